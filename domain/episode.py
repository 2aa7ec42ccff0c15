"""An episode: the case it is about, its attempts, the verdicts on them, and the record it leaves."""

from dataclasses import dataclass
from typing import Protocol

from typing_extensions import TypedDict

from merit_sql.domain.failure import FailureDict
from merit_sql.domain.status import Opinion, Regime, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question on one database, as everyone but an oracle knows it."""

    query_id: str
    database_id: str
    question: str
    position: int = 0
    evidence: str = ""
    initial_sql: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An oracle's answer on one attempt.

    `official` is a benchmark's own score of it, 0–1, and `strict` its strict verdict, 0 or 1: reported
    beside and never shown to a model; None where no benchmark scored it.
    """

    opinion: Opinion
    status: Status
    error: str | None = None
    confirmed_by: str | None = None
    official: float | None = None
    strict: int | None = None


class Oracle(Protocol):
    """Judges one attempt. A reference answer, where there is one, lives in here and nowhere else."""

    @property
    def name(self) -> str:
        """What `confirmed_by` says when this oracle confirmed."""
        ...

    def judge(self, case: Case, sql: str) -> Verdict:
        """The verdict on `sql` as an answer to `case`; failures of the SQL are data."""
        ...


class UsageDict(TypedDict):
    """Tokens of one model call; None where the server did not say (unknown is not 0)."""

    prompt_tokens: int | None
    output_tokens: int | None


class SourceDict(TypedDict):
    """Where one observation behind a memory came from."""

    query_id: str
    database_id: str
    position: int
    polarity: str


class MemoryUseDict(TypedDict):
    """One memory that a prompt showed: its scores (after min–max), and the observations it was folded from.

    Each source is of another query and of a smaller position than the episode's: that made it eligible.
    """

    id: str
    polarity: str
    score: float
    dense: float
    lexical: float
    same_type: bool
    sources: list[SourceDict]


class AttemptDict(TypedDict):
    """One attempt as plain data, in states, checkpoints and records.

    `step` is 0 for the initial SQL. `usage` is None for SQL that was handed in. `repeat_of` is the step
    of the earlier attempt that this one equals where a method refuses repeats. `memory_ids` are the
    entries its prompt showed, `memories` how they were ranked; `dropped` names what the prompt's budget
    left out.
    """

    step: int
    sql: str
    status: str
    error: str | None
    failure: FailureDict | None
    opinion: str
    confirmed_by: str | None
    official: float | None
    strict: int | None
    repeat_of: int | None
    draw: int
    memory_ids: list[str]
    memories: list[MemoryUseDict]
    usage: UsageDict | None
    finish_reason: str | None
    dropped: list[str]


class ReflectionDict(TypedDict):
    """One verbal reflection, local to its episode."""

    step: int
    text: str
    usage: UsageDict


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRecord:
    """What an episode leaves behind: everything a metric needs, nothing that depends on a clock."""

    run: str
    method: str
    regime: Regime
    query_id: str
    database_id: str
    position: int
    status: Status
    confirmed_by: str | None
    sql: str
    attempts: list[AttemptDict]
    reflections: list[ReflectionDict]
    memory_ids: list[str]
