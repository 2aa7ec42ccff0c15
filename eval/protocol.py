"""Protocols: everything that a benchmark run is asked to do, as a file or from the command line."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from merit_sql.domain.errors import DataError
from merit_sql.domain.status import Regime
from merit_sql.graph.method import METHODS
from merit_sql.nodes.state import DEFAULT_BUDGET
from merit_sql.prompts.rendering import FAMILIES
from merit_sql.stores.texts import MemoryText

DEFAULT_MODEL = "embedded:qwen2.5-coder-1.5b"
DEFAULT_ENCODER = "embedded:all-minilm-l6-v2"
GENERATE = "generate"
"""What `initial` says where the model writes the initial predictions."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Tokens(_Table):
    """Tokens that a prompt (by the estimate), a reply with SQL and a reflection may take."""

    prompt: int = Field(default=4096, ge=1)
    reply: int = Field(default=512, ge=1)
    reflection: int = Field(default=512, ge=1)


class Model(_Table):
    """A chat model by name; a revision pins its weights, or is checked where the back end knows them."""

    name: str = DEFAULT_MODEL
    revision: str | None = None
    quantisation: str | None = None


class Encoder(_Table):
    """An encoder by name, and the revision that it must have."""

    name: str = DEFAULT_ENCODER
    revision: str | None = None


class Protocol(_Table):
    """What a run is asked to do; the defaults are those of ``merit bench``.

    None stands for all `databases` and `questions` (ids), for no `limit` on scorable questions, for the
    suite's official seconds as `timeout`, and for each method's own `memory_text`.
    """

    name: str = ""
    suite: Literal["mini", "spider", "bird"]
    methods: tuple[str, ...] = Field(min_length=1, strict=False)
    orders: tuple[int, ...] = Field(default=(0,), min_length=1, strict=False)
    budget: int = Field(default=DEFAULT_BUDGET, ge=0)
    databases: tuple[str, ...] | None = Field(default=None, min_length=1, strict=False)
    questions: tuple[int, ...] | None = Field(default=None, min_length=1, strict=False)
    limit: int | None = Field(default=None, ge=1)
    initial: str = GENERATE
    regime: Regime = Field(default=Regime.DENOTATION_CONFIRMED, strict=False)
    prompts: str = "cached"
    memory_text: MemoryText | None = Field(default=None, strict=False)
    distinct: Literal["keep", "strip"] = "keep"
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens: Tokens = Tokens()
    model: Model = Model()
    encoder: Encoder = Encoder()

    @field_validator("methods")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in names if name not in METHODS]
        if unknown:
            raise ValueError(f"no method is called {', '.join(unknown)}; there are: {', '.join(METHODS)}")
        return tuple(dict.fromkeys(names))

    @field_validator("orders")
    @classmethod
    def _from_zero(cls, orders: tuple[int, ...]) -> tuple[int, ...]:
        if min(orders) < 0:
            raise ValueError("orders are whole numbers from 0 up, e.g. 0, 1, 2")
        return tuple(dict.fromkeys(orders))

    @field_validator("prompts")
    @classmethod
    def _family(cls, name: str) -> str:
        if name not in FAMILIES:
            raise ValueError(f"no prompt family is called {name!r}; there are: {', '.join(FAMILIES)}")
        return name


def bundled() -> list[str]:
    """The names of the protocols that ship."""
    folder = files(__package__) / "protocols"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def read_protocol(name: str) -> dict[str, Any]:
    """The settings of a bundled protocol, or of the TOML file of that path; raises `DataError`."""
    if name in bundled():
        text = (files(__package__) / "protocols" / f"{name}.toml").read_text(encoding="utf-8")
    elif not name.endswith(".toml"):
        raise DataError(f"there is no protocol {name!r}; there are {', '.join(bundled())}, or FILE.toml")
    else:
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise DataError(f"--protocol {name!r} cannot be read: {error}") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"--protocol {name}: is no TOML text ({error})") from error


def resolve(settings: Mapping[str, Any], source: str) -> Protocol:
    """Settings as a protocol; raises `DataError`, naming each that is unknown, missing or of another form."""
    try:
        return Protocol.model_validate(dict(settings))
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'the whole'}: {one['msg'].removeprefix('Value error, ')}"
            for one in error.errors(include_url=False)
        )
        raise DataError(f"{source}: {faults}") from error
