"""What the cross-episode memory holds, what it is asked, and the seams around it."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeVar

from merit_sql.domain.episode import EpisodeRecord
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.sql import normalize
from merit_sql.domain.status import Polarity, Regime, Status

NO_ERROR = "(none)"
"""Stands for an absent DBMS error wherever a text must name one."""


def failure_context(sql: str, status: Status, error: str | None) -> str:
    """The context of a failed attempt: ``attempted_sql=…; status=…; db_error=…``."""
    return f"attempted_sql={sql}; status={status.value}; db_error={error or NO_ERROR}"


class Applicability(StrEnum):
    """Where an entry may be served, relative to the database it came from."""

    GLOBAL = "global"
    SAME_DATABASE = "same_database"
    CROSS_DATABASE = "cross_database"


def identity(error_type: FailureKind, normalized_delta: str) -> str:
    """Entry id: sha256 (hex) of the canonical JSON of the type and the normalised delta."""
    canonical = json.dumps(
        {"error_type": error_type.value, "normalized_delta": normalized_delta},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """What one observation says: a failed attempt in its context, and the change that was seen.

    `failed_sql`, `status`, `db_error` and `error_type` describe the attempt whose context is kept: the
    one before the repair for a positive, the last one for a negative. `outcome` is the status after the
    change. `sql_delta` is `domain.sql.delta`.
    """

    question: str
    schema: str
    database_id: str
    error_type: FailureKind
    failed_sql: str
    status: Status
    db_error: str | None
    sql_delta: str
    outcome: Status
    successful_direction: str = ""
    applicability: Applicability = Applicability.GLOBAL

    @property
    def failure_context(self) -> str:
        """`failure_context` of the attempt that is kept."""
        return failure_context(self.failed_sql, self.status, self.db_error)

    @property
    def normalized_delta(self) -> str:
        """The delta's normal form (method.md, "Delta")."""
        return normalize(self.sql_delta)

    @property
    def identity(self) -> str:
        """The id of the entry that this observation belongs to."""
        return identity(self.error_type, self.normalized_delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where an observation came from. `position` is the 0-based place of its episode in the stream."""

    run: str
    method: str
    regime: Regime
    query_id: str
    database_id: str
    position: int
    step: int
    retrieved_ids: tuple[str, ...]
    polarity: Polarity

    @property
    def commit_key(self) -> tuple[str, str, int]:
        """(run, query, position): a second commit under the same key changes nothing."""
        return (self.run, self.query_id, self.position)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One finished episode's contribution to memory.

    `content` is None only for an observation that was imported from the exchange format, where just the
    representative observation of an entry carries text; `entry_id` is known all the same.
    """

    entry_id: str
    provenance: Provenance
    content: Transition | None

    @classmethod
    def of(cls, provenance: Provenance, content: Transition) -> "Observation":
        """The observation of a transition, under the identity that the transition has."""
        return cls(entry_id=content.identity, provenance=provenance, content=content)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    """The fold of observations of one identity: what is served, and what one exported line holds.

    `confirmations` counts all observations, `successes` and `failures` those of either polarity.
    `content` is that of the newest observation of the winning polarity.
    """

    id: str
    polarity: Polarity
    content: Transition
    confirmations: int
    successes: int
    failures: int
    observations: tuple[Provenance, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The vantage point of one retrieval: which query asks, on which database, at which position.

    Only observations with ``source position < position`` and another query are legal.
    """

    query_id: str
    database_id: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuery:
    """What retrieval matches against: the question and the attempt that just failed.

    `step` is that of the attempt about to be generated, from 1.
    """

    question: str
    sql: str
    status: Status
    error: str | None
    error_type: FailureKind
    step: int = 1

    @property
    def failure_context(self) -> str:
        """`failure_context` of the attempt that just failed."""
        return failure_context(self.sql, self.status, self.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedMemory:
    """One retrieved entry with the scores that ranked it (after min–max, in [0, 1])."""

    entry: MemoryEntry
    score: float
    dense: float
    lexical: float
    same_type: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """What one retrieval serves: positives first, then negatives, each best first."""

    memories: Sequence[RankedMemory] = field(default=())

    @property
    def ids(self) -> list[str]:
        """Entry ids in the order served."""
        return [memory.entry.id for memory in self.memories]


PolicyT_contra = TypeVar("PolicyT_contra", contravariant=True)


class MemoryStore(Protocol[PolicyT_contra]):
    """The cross-episode memory as nodes see it; the policy says how a store ranks."""

    def retrieve(self, query: MemoryQuery, gate: Gate, policy: PolicyT_contra) -> Retrieved:
        """The best legal entries; raises `CausalityError` if an illegal one came back."""
        ...

    def commit(self, observation: Observation) -> None:
        """Keep an observation for good; the same commit key twice changes nothing."""
        ...

    def digest(self) -> str:
        """sha256 (hex) over everything that was committed."""
        ...

    def next_position(self) -> int:
        """One more than the largest position committed; 0 for an empty memory."""
        ...


class Committer(Protocol):
    """The one writer of an episode's outcome; graphs built without one cannot write."""

    def commit(self, record: EpisodeRecord, observation: Observation | None) -> None:
        """Keep the episode's record and its observation, if it made one, exactly once."""
        ...
