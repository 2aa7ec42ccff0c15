"""Retrieved memories as plain data: what a prompt shows of them, and where they came from."""

from typing_extensions import TypedDict

from merit_sql.domain.episode import MemoryUseDict, SourceDict
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.memory import Applicability, MemoryEntry, RankedMemory, Transition
from merit_sql.domain.status import Polarity, Status


class ServedMemory(TypedDict):
    """One retrieved entry, its scores, and the counts behind it."""

    id: str
    polarity: str
    score: float
    dense: float
    lexical: float
    same_type: bool
    error_type: str
    failed_sql: str
    status: str
    db_error: str | None
    sql_delta: str
    outcome: str
    successful_direction: str
    question: str
    database_id: str
    applicability: str
    confirmations: int
    successes: int
    failures: int
    sources: list[SourceDict]


def to_served(memory: RankedMemory) -> ServedMemory:
    """A ranked memory as plain data."""
    entry, content = memory.entry, memory.entry.content
    return {
        "id": entry.id,
        "polarity": entry.polarity.value,
        "score": memory.score,
        "dense": memory.dense,
        "lexical": memory.lexical,
        "same_type": memory.same_type,
        "error_type": content.error_type.value,
        "failed_sql": content.failed_sql,
        "status": content.status.value,
        "db_error": content.db_error,
        "sql_delta": content.sql_delta,
        "outcome": content.outcome.value,
        "successful_direction": content.successful_direction,
        "question": content.question,
        "database_id": content.database_id,
        "applicability": content.applicability.value,
        "confirmations": entry.confirmations,
        "successes": entry.successes,
        "failures": entry.failures,
        "sources": [
            {
                "query_id": one.query_id,
                "database_id": one.database_id,
                "position": one.position,
                "polarity": one.polarity.value,
            }
            for one in entry.observations
        ],
    }


def use_of(memory: ServedMemory) -> MemoryUseDict:
    """What an episode's record keeps of a memory that a prompt showed."""
    return {
        "id": memory["id"],
        "polarity": memory["polarity"],
        "score": memory["score"],
        "dense": memory["dense"],
        "lexical": memory["lexical"],
        "same_type": memory["same_type"],
        "sources": memory["sources"],
    }


def from_served(data: ServedMemory) -> RankedMemory:
    """The inverse of `to_served`; schema and observations, which no prompt shows, stay empty."""
    content = Transition(
        question=data["question"],
        schema="",
        database_id=data["database_id"],
        error_type=FailureKind(data["error_type"]),
        failed_sql=data["failed_sql"],
        status=Status(data["status"]),
        db_error=data["db_error"],
        sql_delta=data["sql_delta"],
        outcome=Status(data["outcome"]),
        successful_direction=data["successful_direction"],
        applicability=Applicability(data["applicability"]),
    )
    entry = MemoryEntry(
        id=data["id"],
        polarity=Polarity(data["polarity"]),
        content=content,
        confirmations=data["confirmations"],
        successes=data["successes"],
        failures=data["failures"],
        observations=(),
    )
    return RankedMemory(
        entry=entry,
        score=data["score"],
        dense=data["dense"],
        lexical=data["lexical"],
        same_type=data["same_type"],
    )
