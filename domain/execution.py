"""Running SQL: limits, results, and the seam that every database stands behind."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from merit_sql.domain.errors import MeritError
from merit_sql.domain.schema import Schema
from merit_sql.domain.status import Status

Cell: TypeAlias = int | float | str | bytes | None
Row: TypeAlias = tuple[Cell, ...]

REFUSED = "only SELECT or WITH queries are allowed"
"""Error text of a statement that the gate or the authorizer turned away."""

EMPTY_REPLY = "the reply holds no single SQL statement"
"""Error text of an empty attempt."""


def timeout_message(seconds: float) -> str:
    """Error text of an attempt that ran past its deadline of `seconds`."""
    return f"timed out after {seconds:g} s"


class TextDecoding(StrEnum):
    """What becomes of text that is not UTF-8: an error (BIRD), or its bad bytes dropped (Spider)."""

    STRICT = "strict"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one statement may use up. Seconds are wall clock; the rest are counts and bytes of the result."""

    seconds: float = 30.0
    rows: int = 1_000_000
    result_bytes: int = 256 * 2**20
    cell_bytes: int = 16 * 2**20

    def __post_init__(self) -> None:
        """Raises `MeritError` for seconds that are no number; 0 and less leave no time."""
        if math.isnan(self.seconds):
            raise MeritError("a limit of nan seconds never ends: give a number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What became of one statement.

    `status` is EXECUTED, EXECUTION_ERROR or TIMEOUT; `error` is None exactly when it is EXECUTED.
    `seconds` covers execute and fetch inside the worker.
    """

    status: Status
    columns: tuple[str, ...] = ()
    rows: Sequence[Row] = ()
    error: str | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the statement ran to its end."""
        return self.status is Status.EXECUTED


class Database(Protocol):
    """One database that can be read and never written."""

    @property
    def database_id(self) -> str:
        """The name that questions use for it."""
        ...

    @property
    def schema(self) -> Schema:
        """Its tables, columns and keys."""
        ...

    def execute(
        self,
        sql: str,
        *,
        limits: Limits | None = None,
        decoding: TextDecoding = TextDecoding.STRICT,
    ) -> Execution:
        """Run one read-only statement; every failure of the statement is data, never an exception."""
        ...

    def fingerprint(self) -> str:
        """sha256 (hex) of the database's bytes."""
        ...
