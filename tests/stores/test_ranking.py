"""The order of a pool, key by key, with raw scores given by hand."""

from collections.abc import Sequence

import pytest

from merit_sql.domain.failure import FailureKind
from merit_sql.domain.memory import Gate, MemoryQuery
from merit_sql.domain.status import Polarity, Status
from merit_sql.stores.folding import Fold
from merit_sql.stores.ranking import (
    TYPE_BONUS,
    Candidate,
    Pool,
    RetrievalPolicy,
    TypeFilter,
    candidate_pool,
    min_max,
    rank,
)

GATE = Gate(query_id="q", database_id="d", position=9)
SYNTAX, AGGREGATION = FailureKind.SYNTAX, FailureKind.AGGREGATION


def ranked(
    rows: Sequence[tuple[str, FailureKind, float, float]],
    policy: RetrievalPolicy,
    asked: FailureKind = AGGREGATION,
) -> list[tuple[str, float]]:
    """Rank rows of (id, type, raw dense, raw lexical), all positive, and give (id, score)."""
    candidates = [
        Candidate(id=name, error_type=kind, fold=Fold(rows=[i], polarity=Polarity.POSITIVE, representative=i))
        for i, (name, kind, _, _) in enumerate(rows)
    ]
    query = MemoryQuery(question="", sql="", status=Status.EXECUTION_ERROR, error=None, error_type=asked)
    served = rank(
        candidates,
        query,
        GATE,
        policy,
        dense=lambda wanted: [rows[row][2] for row in wanted],
        lexical=lambda wanted: [rows[row][3] for row in wanted],
    )
    return [(one.candidate.id, one.score) for one in served]


ALL = (Pool(polarity=Polarity.POSITIVE, limit=9),)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # dense 1, 2/3, 0 and lexical 0, 1, 0: 0.75 twice, decided by dense
        (
            [("b", SYNTAX, 2.0, 5.0), ("a", SYNTAX, 4.0, 4.0), ("c", SYNTAX, -2.0, 4.0)],
            [("a", 0.75), ("b", 0.75), ("c", 0.0)],
        ),
        # equal in everything but the type
        (
            [("a", SYNTAX, 1.0, 1.0), ("b", AGGREGATION, 1.0, 1.0), ("c", SYNTAX, 0.0, 0.0)],
            [("b", 1.0), ("a", 1.0), ("c", 0.0)],
        ),
        # equal in everything
        ([("b", SYNTAX, 1.0, 1.0), ("a", SYNTAX, 1.0, 1.0)], [("a", 0.0), ("b", 0.0)]),
        # differences below the ninth decimal are none
        ([("b", SYNTAX, 1.0 + 4e-10, 0.0), ("a", SYNTAX, 1.0, 0.0)], [("a", 0.0), ("b", 0.0)]),
        # one above it is the whole range
        ([("b", SYNTAX, 1.0 + 6e-10, 0.0), ("a", SYNTAX, 1.0, 0.0)], [("b", 0.75), ("a", 0.0)]),
    ],
)
def test_the_order_of_a_pool(
    rows: list[tuple[str, FailureKind, float, float]], expected: list[tuple[str, float]]
) -> None:
    assert ranked(rows, RetrievalPolicy(pools=ALL, type_filter=TypeFilter.NEVER)) == expected


def test_equal_mixtures_and_dense_scores_are_decided_by_lexical() -> None:
    """Both mixtures round to 0.25 at 12 decimals while lexical still differs, at 1 and just below it."""
    rows = [("a", SYNTAX, 0.0, 1e6), ("b", SYNTAX, 0.0, 1e6 + 1e-6), ("c", SYNTAX, 0.0, -1e6)]
    assert ranked(rows, RetrievalPolicy(pools=ALL)) == [("b", 0.25), ("a", 0.25), ("c", 0.0)]


@pytest.mark.parametrize(
    ("asked", "first"),
    [(AGGREGATION, [("a", 0.75 * 0.95 + 0.1), ("b", 0.75)]), (SYNTAX, [("b", 0.75), ("a", 0.7125)])],
)
def test_the_type_bonus_counts_only_where_types_are_not_reliable(
    asked: FailureKind, first: list[tuple[str, float]]
) -> None:
    rows = [
        ("a", asked, 0.95, 0.0),
        ("b", FailureKind.UNKNOWN, 1.0, 0.0),
        ("c", FailureKind.UNKNOWN, 0.0, 0.0),
    ]
    policy = RetrievalPolicy(pools=ALL, type_filter=TypeFilter.RELIABLE, type_bonus=TYPE_BONUS)
    served = ranked(rows, policy, asked)[:2]
    assert [name for name, _ in served] == [name for name, _ in first]
    assert [score for _, score in served] == pytest.approx([score for _, score in first])


@pytest.mark.parametrize(
    ("type_filter", "asked", "same", "narrowed"),
    [
        (TypeFilter.ALWAYS, AGGREGATION, 3, True),
        (TypeFilter.ALWAYS, AGGREGATION, 2, False),
        (TypeFilter.RELIABLE, AGGREGATION, 5, False),
        (TypeFilter.RELIABLE, SYNTAX, 3, True),
        (TypeFilter.RELIABLE, SYNTAX, 2, False),
        (TypeFilter.RELIABLE, FailureKind.SCHEMA_LINKING, 3, True),
        (TypeFilter.RELIABLE, FailureKind.EXECUTION, 3, True),
        (TypeFilter.RELIABLE, FailureKind.FILTER_VALUE, 3, False),
        (TypeFilter.RELIABLE, FailureKind.RESULT_MISMATCH, 3, False),
        (TypeFilter.RELIABLE, FailureKind.UNKNOWN, 3, False),
        (TypeFilter.NEVER, SYNTAX, 5, False),
    ],
)
def test_when_a_pool_is_narrowed_to_the_type(
    type_filter: TypeFilter, asked: FailureKind, same: int, narrowed: bool
) -> None:
    other = next(kind for kind in FailureKind if kind is not asked)
    candidates = [
        Candidate(
            id=str(i),
            error_type=asked if i < same else other,
            fold=Fold(rows=[i], polarity=Polarity.NEGATIVE, representative=i),
        )
        for i in range(9)
    ]
    pool = Pool(polarity=Polarity.NEGATIVE, limit=1)
    chosen = candidate_pool(candidates, pool, asked, RetrievalPolicy(type_filter=type_filter))
    assert len(chosen) == (same if narrowed else 9)
    assert candidate_pool(candidates, ALL[0], asked, RetrievalPolicy()) == []


def test_min_max_by_hand() -> None:
    assert min_max([-1.0, 0.0, 3.0]) == [0.0, 0.25, 1.0]
    assert min_max([7.0, 7.0]) == [0.0, 0.0]
    assert min_max([7.0]) == [0.0]
