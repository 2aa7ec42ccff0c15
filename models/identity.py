"""Which model answered: what a record and a manifest keep of it."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

from langchain_core.language_models import BaseChatModel

from merit_sql.domain.errors import DataError

UNPINNED = "unpinned"
"""Revision of a model whose weights nothing pins down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelIdentity:
    """Everything known of a model that may change its replies; None where it is not known.

    `kind` is the back end. `revision` pins the weights: a sha256, a commit, or where nothing better is known
    the server that answered. `context` is in tokens. `chat_template` is the sha256 (hex) of the template that
    turns messages into a prompt, and `system` the system line which that template adds by itself. `sampling`
    names settings that the back end fixes beyond those of a `Decoding`.
    """

    kind: str
    model: str
    revision: str
    quantisation: str | None = None
    runtime: str | None = None
    context: int | None = None
    chat_template: str | None = None
    system: str | None = None
    sampling: str | None = None
    base_url: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain JSON-able data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; raises `DataError` for data of another form."""
        names = {field.name for field in dataclasses.fields(cls)}
        required = {"kind", "model", "revision"}
        if not required <= set(data) <= names or any(not isinstance(data[name], str) for name in required):
            raise DataError(f"no model identity: it has the fields {', '.join(sorted(map(str, data)))}")
        return cls(**data)

    def digest(self) -> str:
        """sha256 (hex) of the canonical JSON of all fields."""
        canonical = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()

    def describe(self) -> str:
        """One line for a person."""
        return f"{self.kind}:{self.model} (revision {self.revision})"


@runtime_checkable
class Identified(Protocol):
    """A chat model that says which model it is."""

    @property
    def identity(self) -> ModelIdentity:
        """Which model answers here."""
        ...


def identity(model: BaseChatModel) -> ModelIdentity:
    """Which model `model` is, whatever back end it has.

    A chat model that is not ours is known by its class and the name it was given; nothing pins its weights.
    """
    if isinstance(model, Identified):
        return model.identity
    named = getattr(model, "model_name", None) or getattr(model, "model", None)
    return ModelIdentity(
        kind=type(model).__name__,
        model=named if isinstance(named, str) else type(model).__name__,
        revision=UNPINNED,
    )
