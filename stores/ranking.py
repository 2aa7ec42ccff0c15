"""How retrieval ranks: the policy with its weights, candidate pools, min–max, the mixture, the order."""

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from merit_sql.domain.failure import FailureKind
from merit_sql.domain.memory import Gate, MemoryQuery
from merit_sql.domain.status import Polarity
from merit_sql.stores.folding import Fold
from merit_sql.stores.gate import Scope
from merit_sql.stores.texts import MemoryText

DENSE_WEIGHT = 0.75
LEXICAL_WEIGHT = 0.25
TYPE_BONUS = 0.10
"""What the type-reliability variant adds for an equal type where types are not reliable."""

MINIMUM_SAME_TYPE = 3
"""A typed pool with fewer candidates than this gives way to the whole legal pool."""

RELIABLE_TYPES = frozenset({FailureKind.SYNTAX, FailureKind.SCHEMA_LINKING, FailureKind.EXECUTION})
"""Types for which h(τ) = 1: the DBMS itself named the failure."""

RAW_DECIMALS = 9
MIXED_DECIMALS = 12


class TypeFilter(StrEnum):
    """When a pool is narrowed to the query's failure type: always, for reliable types only, or never."""

    ALWAYS = "always"
    RELIABLE = "reliable"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Candidates that are ranked together, and how many of them are served.

    `polarity` None puts both polarities into one pool.
    """

    polarity: Polarity | None
    limit: int


SEPARATE_POOLS = (
    Pool(polarity=Polarity.POSITIVE, limit=3),
    Pool(polarity=Polarity.NEGATIVE, limit=1),
)
"""The method's pools: at most three positives, then at most one negative."""

POSITIVES_ONLY = (Pool(polarity=Polarity.POSITIVE, limit=3),)
UNTYPED_POOL = (Pool(polarity=None, limit=4),)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalPolicy:
    """Everything that one method's retrieval differs in from another's; the defaults are `merit`'s.

    A weight of 0 switches its channel off, and the other's becomes 1. `type_bonus` is added to
    candidates of the query's type where that type is not reliable. `shuffle_order` replaces ranking by a
    seeded shuffle of the pool, and is part of its seed: the order of the stream.
    """

    pools: tuple[Pool, ...] = SEPARATE_POOLS
    type_filter: TypeFilter = TypeFilter.ALWAYS
    minimum_same_type: int = MINIMUM_SAME_TYPE
    dense_weight: float = DENSE_WEIGHT
    lexical_weight: float = LEXICAL_WEIGHT
    type_bonus: float = 0.0
    scope: Scope = Scope.ANY
    shuffle_order: int | str | None = None
    memory_text: MemoryText = MemoryText.COMPACT

    def __post_init__(self) -> None:
        if min(self.dense_weight, self.lexical_weight) < 0 or self.dense_weight + self.lexical_weight <= 0:
            raise ValueError(
                f"weights {self.dense_weight} (dense) and {self.lexical_weight} (lexical): "
                "neither may be negative, and one must be positive"
            )
        if any(pool.limit < 0 for pool in self.pools):
            raise ValueError(f"a pool's limit may not be negative: {self.pools}")
        if self.shuffle_order is not None and any(pool.polarity is None for pool in self.pools):
            raise ValueError("a shuffled pool needs one polarity: its seed names it")

    def for_order(self, order: int | str) -> "RetrievalPolicy":
        """The policy in a stream of this order: another seed where it shuffles, else itself."""
        return self if self.shuffle_order is None else replace(self, shuffle_order=order)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A legal fold as ranking sees it: entry id, type, and the fold with its representative row."""

    id: str
    error_type: FailureKind
    fold: Fold


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A candidate with its scores after min–max; all 0 where the policy shuffles."""

    candidate: Candidate
    score: float = 0.0
    dense: float = 0.0
    lexical: float = 0.0
    same_type: bool = False


Scorer: TypeAlias = Callable[[Sequence[int]], Sequence[float]]
"""Raw scores of rows in one channel."""


def rank(
    candidates: Sequence[Candidate],
    query: MemoryQuery,
    gate: Gate,
    policy: RetrievalPolicy,
    *,
    dense: Scorer,
    lexical: Scorer,
) -> list[Ranked]:
    """What a policy serves of the legal candidates, positives first, each polarity best first."""
    served: list[Ranked] = []
    for pool in policy.pools:
        members = candidate_pool(candidates, pool, query.error_type, policy)
        if pool.limit == 0 or not members:
            continue
        if policy.shuffle_order is not None:
            ordered = _shuffled(members, pool, query, gate, policy)
        else:
            ordered = _scored(members, query, policy, dense, lexical)
        served.extend(ordered[: pool.limit])
    return sorted(served, key=lambda one: one.candidate.fold.polarity is not Polarity.POSITIVE)


def candidate_pool(
    candidates: Sequence[Candidate], pool: Pool, error_type: FailureKind, policy: RetrievalPolicy
) -> list[Candidate]:
    """The candidates that are scored together: those of the same type where the policy filters by type
    and there are enough of them, else all of the pool's polarity.
    """
    members = [one for one in candidates if pool.polarity in (None, one.fold.polarity)]
    if policy.type_filter == TypeFilter.NEVER:
        return members
    if policy.type_filter == TypeFilter.RELIABLE and error_type not in RELIABLE_TYPES:
        return members
    same = [one for one in members if one.error_type is error_type]
    return same if len(same) >= policy.minimum_same_type else members


def min_max(raw: Sequence[float]) -> list[float]:
    """Raw scores, rounded to 9 decimals, on [0, 1] within their pool; a constant channel gives 0."""
    rounded = [round(float(value), RAW_DECIMALS) for value in raw]
    low, high = min(rounded), max(rounded)
    if low == high:
        return [0.0] * len(rounded)
    return [(value - low) / (high - low) for value in rounded]


def _scored(
    members: Sequence[Candidate],
    query: MemoryQuery,
    policy: RetrievalPolicy,
    dense: Scorer,
    lexical: Scorer,
) -> list[Ranked]:
    rows = [one.fold.representative for one in members]
    off = [0.0] * len(rows)
    total = policy.dense_weight + policy.lexical_weight
    dense_weight, lexical_weight = policy.dense_weight / total, policy.lexical_weight / total
    by_dense = min_max(dense(rows)) if dense_weight else off
    by_lexical = min_max(lexical(rows)) if lexical_weight else off
    bonus = 0.0 if query.error_type in RELIABLE_TYPES else policy.type_bonus
    ranked = [
        Ranked(
            candidate=one,
            score=round(
                dense_weight * by_dense[i]
                + lexical_weight * by_lexical[i]
                + bonus * (one.error_type is query.error_type),
                MIXED_DECIMALS,
            ),
            dense=by_dense[i],
            lexical=by_lexical[i],
            same_type=one.error_type is query.error_type,
        )
        for i, one in enumerate(members)
    ]
    return sorted(ranked, key=_order)


def _order(one: Ranked) -> tuple[float, float, float, bool, str]:
    return (-one.score, -one.dense, -one.lexical, not one.same_type, one.candidate.id)


def _shuffled(
    members: Sequence[Candidate], pool: Pool, query: MemoryQuery, gate: Gate, policy: RetrievalPolicy
) -> list[Ranked]:
    name = "" if pool.polarity is None else pool.polarity.value
    phrase = f"{policy.shuffle_order}|{gate.query_id}|{query.step}|{name}"
    seed = int(hashlib.sha256(phrase.encode("utf-8", "surrogatepass")).hexdigest()[:16], 16)
    shuffled = sorted(members, key=lambda one: one.id)
    random.Random(seed).shuffle(shuffled)  # noqa: S311 - the method prescribes this generator; nothing secret hangs on it
    return [Ranked(candidate=one, same_type=one.error_type is query.error_type) for one in shuffled]
