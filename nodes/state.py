"""The state of one episode: plain data, so that it can be checkpointed, streamed and shown."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NotRequired, Protocol

from typing_extensions import TypedDict

from merit_sql.domain.episode import AttemptDict, Case, MemoryUseDict, ReflectionDict, UsageDict
from merit_sql.domain.memory import RankedMemory, Retrieved
from merit_sql.nodes.served import ServedMemory, from_served, to_served

DEFAULT_BUDGET = 7
"""K: repair generations an episode may spend (method.md, "The task")."""


class EpisodeInput(TypedDict):
    """What a caller, or a parent graph, hands in."""

    question: str
    database_id: str
    evidence: NotRequired[str | None]
    initial_sql: NotRequired[str | None]
    query_id: NotRequired[str | None]
    position: NotRequired[int | None]


class EpisodeOutput(TypedDict):
    """What an episode gives back; `status` is the last attempt's, `memory_ids` what its prompt showed."""

    sql: str
    status: str
    confirmed_by: str | None
    attempts: list[AttemptDict]
    memory_ids: list[str]


class Candidate(TypedDict):
    """A generated SQL on its way to the oracle."""

    step: int
    sql: str
    repeat_of: int | None
    draw: int
    memory_ids: list[str]
    memories: list[MemoryUseDict]
    usage: UsageDict | None
    finish_reason: str | None
    dropped: list[str]


class EpisodeState(TypedDict, total=False):
    """Public keys first, then what stays inside the episode."""

    question: str
    database_id: str
    evidence: str | None
    initial_sql: str | None
    query_id: str | None
    position: int | None

    sql: str
    status: str
    confirmed_by: str | None
    attempts: list[AttemptDict]
    memory_ids: list[str]

    budget: int
    candidate: Candidate | None
    retrieved: list[ServedMemory]
    reflections: list[ReflectionDict]
    opened_for: str
    finished: bool


class Node(Protocol):
    """A node of the graph: what it returns replaces those keys of the state."""

    def __call__(self, state: EpisodeState) -> EpisodeState:
        """One superstep."""
        ...


def case_of(state: EpisodeState) -> Case:
    """The case that an opened episode is about."""
    query_id, position = state["query_id"], state["position"]
    if query_id is None or position is None:
        raise ValueError("the episode has not been opened: its query id and position are not known")
    return Case(
        query_id=query_id,
        database_id=state["database_id"],
        question=state["question"],
        position=position,
        evidence=state.get("evidence") or "",
        initial_sql=state.get("initial_sql"),
    )


def input_key(state: Mapping[str, Any]) -> str:
    """Hash (hex) of what was asked: tells a new episode on an old thread from one that goes on."""
    asked = [state.get(key) for key in ("question", "database_id", "evidence", "initial_sql")]
    return _digest(asked)


def opening(state: EpisodeState, *, next_position: int, budget: int) -> EpisodeState:
    """What the first node of an episode must write before its own work; empty once it is open.

    A thread can hold an earlier episode's values: they are replaced where that episode was finished or
    was about something else. The query id of a question that came without one is the hash of question,
    database and position.
    """
    key = input_key(state)
    if state.get("finished") is False and state.get("opened_for") == key:
        return {}
    position = state.get("position")
    if position is None:
        position = next_position
    query_id = state.get("query_id") or _digest([state["question"], state["database_id"], position])
    return {
        "query_id": query_id,
        "position": position,
        "attempts": [],
        "memory_ids": [],
        "budget": budget,
        "candidate": None,
        "retrieved": [],
        "reflections": [],
        "opened_for": key,
        "finished": False,
    }


def standing_attempt(attempts: list[AttemptDict]) -> AttemptDict:
    """The newest attempt that is not a refused repeat: what feedback and retrieval are about."""
    return next(attempt for attempt in reversed(attempts) if attempt["repeat_of"] is None)


def served(retrieved: Retrieved) -> list[ServedMemory]:
    """Retrieved memories as plain data."""
    return [to_served(memory) for memory in retrieved.memories]


def retrieved_of(state: EpisodeState) -> Retrieved:
    """The inverse of `served` on a state."""
    memories: list[RankedMemory] = [from_served(memory) for memory in state.get("retrieved", [])]
    return Retrieved(memories=memories)


def _digest(value: object) -> str:
    canonical = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
