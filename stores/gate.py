"""The causal gate: which observations a retrieval may see, and the proof afterwards that it saw no other.

The store cannot hold a benchmark's answer: a `Transition` has no field for one, its writer is handed the
model's own attempts only, and an observation whose id is not the hash of its own delta is refused at the
door. The fourth rule holds what is served to exactly what was committed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from merit_sql.domain.errors import CausalityError
from merit_sql.domain.memory import Applicability, Gate, MemoryEntry, Observation

CommitKey: TypeAlias = tuple[str, str, int]


class Scope(StrEnum):
    """Which source databases a policy admits: all, or all but the one that is asked about."""

    ANY = "any"
    CROSS_DATABASE = "cross_database"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vantage:
    """From where a retrieval looks: its gate, its policy's scope, and what was committed so far by key."""

    gate: Gate
    scope: Scope
    committed: Mapping[CommitKey, Observation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One check: `permits` says whether an observation passes, `reason` what is wrong with one that fails."""

    name: str
    reason: str
    permits: Callable[[Observation, Vantage], bool]


def _is_finalized(observation: Observation, vantage: Vantage) -> bool:
    return observation.provenance.commit_key in vantage.committed


def _is_of_another_query(observation: Observation, vantage: Vantage) -> bool:
    return observation.provenance.query_id != vantage.gate.query_id


def _is_earlier(observation: Observation, vantage: Vantage) -> bool:
    return observation.provenance.position < vantage.gate.position


def _is_what_was_committed(observation: Observation, vantage: Vantage) -> bool:
    kept = vantage.committed.get(observation.provenance.commit_key)
    return kept is observation or kept == observation


def _is_in_scope(observation: Observation, vantage: Vantage) -> bool:
    return vantage.scope == Scope.ANY or observation.provenance.database_id != vantage.gate.database_id


RULES: tuple[Rule, ...] = (
    Rule(
        name="finalized",
        reason="its episode is not finalized: nothing was committed under its key",
        permits=_is_finalized,
    ),
    Rule(
        name="other query",
        reason="the current query produced it",
        permits=_is_of_another_query,
    ),
    Rule(
        name="earlier",
        reason="its position is not before the current one",
        permits=_is_earlier,
    ),
    Rule(
        name="own words",
        reason="it is not what its episode committed, so an answer from outside could stand in it",
        permits=_is_what_was_committed,
    ),
    Rule(
        name="scope",
        reason="it comes from the database asked about, which this policy puts off limits",
        permits=_is_in_scope,
    ),
)
"""The four causal checks in their order, then the policy's scope."""


def legal(rows: Sequence[int], observations: Sequence[Observation], vantage: Vantage) -> list[int]:
    """Those of `rows` (indices into `observations`, all of one identity) that may be seen, in their order.

    An imported observation without text has no applicability of its own: it must meet that of every
    text beside it that passed the rules.
    """
    passed = [row for row in rows if all(rule.permits(observations[row], vantage) for rule in RULES)]
    stated = {content.applicability for row in passed if (content := observations[row].content)}
    if stated <= {Applicability.GLOBAL}:
        return passed
    return [row for row in passed if _applies(observations[row], stated, vantage.gate)]


def _applies(observation: Observation, stated: set[Applicability], gate: Gate) -> bool:
    content = observation.content
    same = observation.provenance.database_id == gate.database_id
    wanted = stated if content is None else {content.applicability}
    return (Applicability.CROSS_DATABASE if same else Applicability.SAME_DATABASE) not in wanted


def assert_causal(entries: Sequence[MemoryEntry], vantage: Vantage) -> None:
    """Check again what came back from a retrieval; raises `CausalityError` naming entry and reason."""
    for entry in entries:
        behind: list[Observation] = []
        for provenance in entry.observations:
            kept = vantage.committed.get(provenance.commit_key)
            if kept is None or kept.provenance != provenance:
                raise _violation(entry, RULES[0].reason, vantage)
            behind.append(kept)
            for rule in RULES:
                if not rule.permits(kept, vantage):
                    raise _violation(entry, rule.reason, vantage)
        if len(legal(range(len(behind)), behind, vantage)) != len(behind):
            raise _violation(entry, "its applicability forbids this database", vantage)
        if all(observation.content != entry.content for observation in behind):
            raise _violation(entry, "its text belongs to none of its observations", vantage)


def _violation(entry: MemoryEntry, reason: str, vantage: Vantage) -> CausalityError:
    gate = vantage.gate
    return CausalityError(
        f"memory {entry.id} was retrieved for query {gate.query_id!r} at position {gate.position} on "
        f"{gate.database_id!r}, and must not be: {reason}. The run stops here; report this as a bug"
    )
