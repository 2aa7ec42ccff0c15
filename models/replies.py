"""A recorded reply, the key it is found under, and the seam that every kind of record stands behind."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self

from langchain_core.messages import BaseMessage

from merit_sql.domain.errors import MeritError, ModelError
from merit_sql.models.identity import ModelIdentity
from merit_sql.models.messages import rendered

SETTINGS = ("temperature", "top_p", "max_tokens", "seed")
"""The call options that a key holds, besides the stop texts."""


class RecordError(MeritError):
    """A reply record is damaged, is of another kind, or cannot be read or written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a record keeps of one model call; None where the server did not say."""

    text: str
    prompt_tokens: int | None
    output_tokens: int | None
    finish_reason: str | None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """The inverse of `to_dict`; raises `RecordError` for anything else."""
        fields = {"text": str, "prompt_tokens": int, "output_tokens": int, "finish_reason": str}
        if not isinstance(data, dict) or set(data) != set(fields):
            raise RecordError(f"a recorded reply does not have the fields {', '.join(fields)}")
        for name, kind in fields.items():
            if not isinstance(data[name], kind) and (name == "text" or data[name] is not None):
                raise RecordError(f"the field {name} of a recorded reply is a {type(data[name]).__name__}")
        return cls(**data)


class Replies(Protocol):
    """A record that can be looked into."""

    @property
    def name(self) -> str:
        """Where it lies, for messages."""
        ...

    def get(self, key: str) -> Reply | None:
        """The reply under a key, or None; raises `RecordError` where the record is damaged."""
        ...

    def identities(self) -> list[ModelIdentity]:
        """The models whose replies it holds, in the order of their digests."""
        ...

    def items(self) -> Iterator[tuple[str, ModelIdentity, Reply]]:
        """Every key with its model and its reply, in the order of the keys."""
        ...


def reply_key(
    messages: Sequence[BaseMessage],
    identity: ModelIdentity,
    options: Mapping[str, Any],
    stop: Sequence[str] | None,
) -> str:
    """Key of a reply: sha256 (hex) of messages, model and revision, decoding settings, seed and draw.

    The draw index is the seed, and 0 where there is none. A top-p that was not given is 1. Neither the step
    nor the method is part of it, so equal prompts share a reply. Raises `ModelError` for an option that the
    key does not know and that might change the reply.
    """
    unknown = sorted(set(options) - set(SETTINGS))
    if unknown:
        raise ModelError(
            f"replies are recorded by {', '.join(SETTINGS)} and stop; a call with {', '.join(unknown)} "
            "cannot be told apart from one without: leave it out, or ask the model itself"
        )
    seed = options.get("seed")
    temperature, top_p = options.get("temperature"), options.get("top_p")
    content = {
        "messages": rendered(messages),
        "model": identity.model,
        "revision": identity.revision,
        "temperature": None if temperature is None else float(temperature),
        "top_p": 1.0 if top_p is None else float(top_p),
        "max_tokens": options.get("max_tokens"),
        "stop": list(stop or ()),
        "seed": seed,
        "draw": seed or 0,
    }
    return hashlib.sha256(
        json.dumps(content, sort_keys=True, separators=(",", ":")).encode("ascii")
    ).hexdigest()
