"""Means, intervals and p-values: worked out by hand, and held against scipy and statsmodels."""

import math
import time
import tracemalloc
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests

from merit_sql.domain.episode import AttemptDict, EpisodeRecord
from merit_sql.domain.errors import DataError
from merit_sql.domain.status import Regime, Status
from merit_sql.eval.statistics import (
    Outcomes,
    accuracy_bootstrap,
    exact_mcnemar,
    holm,
    mcnemar,
    mean,
    outcomes,
    paired_bootstrap,
    sample_sd,
)

PROBABILITIES = st.lists(st.floats(min_value=0, max_value=1), min_size=1, max_size=12)


def arm(
    rows: Sequence[Sequence[float]],
    *,
    method: str = "ours",
    databases: Sequence[str] | None = None,
    orders: Sequence[int] | None = None,
) -> Outcomes:
    names = databases or ["d"] * len(rows)
    return Outcomes(
        method=method,
        orders=tuple(orders if orders is not None else range(len(rows[0]) if rows else 1)),
        scores={str(query): tuple(row) for query, row in enumerate(rows)},
        databases={str(query): name for query, name in enumerate(names)},
    )


def test_mean_and_sample_deviation_of_three_orders() -> None:
    # Squared distances from 4 are 4, 0 and 4; 8 / (3 - 1) = 4, whose root is 2.
    assert mean([2, 4, 6]) == 4 and sample_sd([2, 4, 6]) == 2
    assert mean([7]) == 7 and sample_sd([7]) is None
    assert mean([]) is None and sample_sd([]) is None


@given(st.lists(st.floats(min_value=-100, max_value=100), min_size=2, max_size=9))
def test_deviation_is_numpys_with_one_degree_less(values: list[float]) -> None:
    assert sample_sd(values) == pytest.approx(float(np.std(values, ddof=1)), abs=1e-9)


def test_two_queries_of_which_one_gains() -> None:
    # Half of the resamples hold each query once (50), a quarter the gain twice (100), a quarter never (0).
    estimate = paired_bootstrap(arm([[1], [0]]), arm([[0], [0]], method="theirs"), seed=1)
    assert estimate is not None
    assert (estimate.value, estimate.interval, estimate.clusters) == (50, (0, 100), 2)
    # At a level of 20 % the quantiles 0.4 and 0.6 both fall into the middle half.
    narrow = paired_bootstrap(arm([[1], [0]]), arm([[0], [0]], method="theirs"), seed=1, level=0.2)
    assert narrow is not None and narrow.interval == (50, 50)


def test_the_interval_of_many_equal_queries_is_the_binomials() -> None:
    # 400 queries, 100 of them right: a resample's sum is Binomial(400, 1/4). Its quantiles are 83, since
    # P(X <= 82) = 0.0200 and P(X <= 83) = 0.0266, and 117, since P(X <= 116) = 0.9701, P(X <= 117) = 0.9769.
    distribution = scipy.stats.binom(400, 0.25)
    assert [distribution.ppf(0.025), distribution.ppf(0.975)] == [83, 117]
    rows = [[1]] * 100 + [[0]] * 300
    estimate = accuracy_bootstrap(arm(rows), seed=0, resamples=40_000)
    assert estimate is not None and estimate.value == 25
    assert estimate.interval == (83 / 4, 117 / 4)


def test_orders_of_a_query_stay_together() -> None:
    # Every query is right in one order of two. Its mean is 1/2 in any resample, so the interval is a point;
    # resampling the four answers apart would spread it over 0 to 100.
    estimate = accuracy_bootstrap(arm([[1, 0], [0, 1]]), seed=3)
    assert estimate is not None and estimate.interval == (50, 50)
    # Against itself nothing differs, and it is exactly 0, not 1e-18.
    thirds = arm([[1, 0, 0], [0, 1, 1], [1, 1, 0]])
    paired = paired_bootstrap(thirds, thirds, seed=3)
    assert paired is not None and (paired.value, paired.interval) == (0, (0, 0))


def test_a_single_order_stands_for_each_of_several() -> None:
    # Means 2/3, 1/3 and 1 against 1, 0 and 0: (-1/3 + 1/3 + 1) / 3 = 1/3.
    ours = arm([[1, 1, 0], [0, 0, 1], [1, 1, 1]])
    theirs = arm([[1], [0], [0]], method="iterative", orders=[0])
    written_out = arm([[1, 1, 1], [0, 0, 0], [0, 0, 0]], method="iterative")
    estimate = paired_bootstrap(ours, theirs, seed=5)
    assert estimate is not None and estimate.value == pytest.approx(100 / 3)
    assert estimate == paired_bootstrap(ours, written_out, seed=5)
    backwards = paired_bootstrap(theirs, ours, seed=5)
    assert backwards is not None and estimate.interval is not None and backwards.interval is not None
    assert backwards.value == -estimate.value
    assert backwards.interval == pytest.approx([-end for end in reversed(estimate.interval)])


def test_databases_are_resampled_whole() -> None:
    # a gains on both of its queries, b on neither of its six: all of a (100), all of b (0), or one each
    # (2 / 8 = 25): a quarter, a quarter and a half of the resamples.
    rows, databases = [[1]] * 2 + [[0]] * 6, ["a"] * 2 + ["b"] * 6
    ours = arm(rows, databases=databases)
    theirs = arm([[0]] * 8, method="theirs", databases=databases)
    estimate = paired_bootstrap(ours, theirs, seed=2, cluster="database")
    assert estimate is not None
    assert (estimate.value, estimate.interval, estimate.clusters) == (25, (0, 100), 2)
    middle = paired_bootstrap(ours, theirs, seed=2, cluster="database", level=0.2)
    assert middle is not None and middle.interval == (25, 25)
    by_query = paired_bootstrap(ours, theirs, seed=2)
    assert by_query is not None and by_query.clusters == 8 and by_query.interval != estimate.interval


def test_the_interval_is_scipys() -> None:
    generator = np.random.default_rng(11)
    ours, theirs = generator.integers(0, 2, size=(2, 60, 3)).tolist()
    differences = 100 * (np.mean(ours, axis=1) - np.mean(theirs, axis=1))
    reference = scipy.stats.bootstrap(
        (differences,), np.mean, n_resamples=2_000, method="percentile", rng=np.random.default_rng(9)
    ).confidence_interval
    # Each draws its own random numbers: equal up to the noise of 2,000 resamples.
    estimate = paired_bootstrap(arm(ours), arm(theirs, method="theirs"), seed=9, resamples=2_000)
    assert estimate is not None and estimate.value == pytest.approx(float(np.mean(differences)))
    assert estimate.interval == pytest.approx((reference.low, reference.high), abs=1.5)


def test_the_seed_and_nothing_else_decides() -> None:
    generator = np.random.default_rng(1)
    rows = generator.integers(0, 2, size=(50, 3)).tolist()
    ours, theirs = arm(rows), arm([[0, 1, 0]] * 50, method="theirs")
    turned = Outcomes(
        method="ours",
        orders=ours.orders,
        scores=dict(reversed(ours.scores.items())),
        databases=ours.databases,
    )
    once = paired_bootstrap(ours, theirs, seed=4, resamples=100)
    assert once == paired_bootstrap(turned, theirs, seed=4, resamples=100)
    assert once != paired_bootstrap(ours, theirs, seed=5, resamples=100)


def test_the_size_of_bird_takes_neither_time_nor_memory() -> None:
    generator = np.random.default_rng(1)
    ours, theirs = generator.integers(0, 2, size=(2, 1534, 3)).tolist()
    tracemalloc.start()
    begun = time.process_time()
    estimate = paired_bootstrap(arm(ours), arm(theirs, method="theirs"), seed=0)
    seconds = time.process_time() - begun
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert estimate is not None and estimate.interval is not None
    low, high = estimate.interval
    assert low < estimate.value < high
    assert seconds < 2
    assert peak < 64 * 2**20


def test_too_little_to_resample_has_no_interval_and_no_nan() -> None:
    nothing, one = arm([]), arm([[1]])
    assert accuracy_bootstrap(nothing, seed=0) is None
    assert paired_bootstrap(nothing, nothing, seed=0) is None
    assert mcnemar(nothing, nothing)[0].p_value == 1
    estimate = paired_bootstrap(one, arm([[0]], method="theirs"), seed=0)
    assert estimate is not None and (estimate.value, estimate.interval) == (100, None)
    one_database = accuracy_bootstrap(arm([[1], [0]]), seed=0, cluster="database")
    assert one_database is not None and (one_database.value, one_database.interval) == (50, None)


def test_other_questions_are_named() -> None:
    ours = arm([[1], [0], [1]], method="merit")
    theirs = Outcomes(
        method="iterative", orders=(0,), scores={"0": (1,), "7": (0,)}, databases={"0": "d", "7": "d"}
    )
    for compare in (lambda: paired_bootstrap(ours, theirs, seed=0), lambda: mcnemar(ours, theirs)):
        with pytest.raises(DataError, match=r"2 only in merit \(1, 2\); 1 only in iterative \(7\)"):
            compare()


def test_orders_that_differ_and_questions_that_moved_are_refused() -> None:
    with pytest.raises(DataError, match=r"orders \(0, 1\) and theirs \(0, 2\)"):
        paired_bootstrap(arm([[1, 0]]), arm([[1, 0]], method="theirs", orders=[0, 2]), seed=0)
    with pytest.raises(DataError, match="0 of different databases"):
        paired_bootstrap(arm([[1]]), arm([[1]], method="theirs", databases=["e"]), seed=0)


@pytest.mark.parametrize("row", [(math.nan,), (1.5,), (-1,), (0, 1)])
def test_scores_are_numbers_in_the_unit_interval_one_an_order(row: tuple[float, ...]) -> None:
    with pytest.raises(DataError, match="query q"):
        Outcomes(method="m", orders=(0,), scores={"q": row}, databases={"q": "d"})


@pytest.fixture
def record(attempt: Callable[..., AttemptDict]) -> Callable[[str, str, int], EpisodeRecord]:
    def build(query: str, database: str, strict: int) -> EpisodeRecord:
        last = attempt(0, "A", strict=strict, opinion="confirmed" if strict else "refuted")
        return EpisodeRecord(
            run="r",
            method="m",
            regime=Regime.DENOTATION_CONFIRMED,
            query_id=query,
            database_id=database,
            position=0,
            status=Status.CORRECT if strict else Status.DENOTATION_MISMATCH,
            confirmed_by=None,
            sql="A",
            attempts=[last],
            reflections=[],
            memory_ids=[],
        )

    return build


def test_outcomes_come_from_records_whatever_their_order(
    record: Callable[[str, str, int], EpisodeRecord],
) -> None:
    streams = {0: [record("4", "a", 1), record("9", "b", 0)], 2: [record("9", "b", 1), record("4", "a", 1)]}
    made = outcomes("merit", streams)
    assert (made.orders, made.scores) == ((0, 2), {"4": (1, 1), "9": (0, 1)})
    assert made.databases == {"4": "a", "9": "b"}
    with pytest.raises(DataError, match=r"1 only in merit, order 0 \(9\)"):
        outcomes("merit", {0: streams[0], 2: streams[2][1:]})
    with pytest.raises(DataError, match="no stream"):
        outcomes("merit", {})


def test_mcnemar_of_five_to_one() -> None:
    # Of 6 discordant questions 1 is theirs: 2 * (1 + 6) / 64.
    ours = arm([[1]] * 5 + [[0]] + [[1]] * 4 + [[0]] * 3)
    theirs = arm([[0]] * 5 + [[1]] + [[1]] * 4 + [[0]] * 3, method="theirs")
    (test,) = mcnemar(ours, theirs)
    assert (test.order, test.only_ours, test.only_theirs, test.p_value) == (0, 5, 1, 14 / 64)
    assert exact_mcnemar(0, 0) == 1 and exact_mcnemar(3, 3) == 1 and exact_mcnemar(0, 5) == 2 / 32


def test_mcnemar_sets_a_single_order_against_each() -> None:
    tests = mcnemar(arm([[1, 0], [1, 1]], orders=[1, 2]), arm([[0], [0]], method="theirs", orders=[0]))
    assert [(one.order, one.only_ours, one.only_theirs) for one in tests] == [(1, 2, 0), (2, 1, 0)]
    with pytest.raises(DataError, match="right or wrong"):
        mcnemar(arm([[0.5]]), arm([[1]], method="theirs"))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 900), st.integers(0, 900))
def test_mcnemar_is_that_of_scipy_and_statsmodels(b: int, c: int) -> None:
    p_value = exact_mcnemar(b, c)
    if b + c:
        assert p_value == pytest.approx(scipy.stats.binomtest(b, b + c, 0.5).pvalue, rel=1e-7)
        reference = reference_mcnemar([[0, b], [c, 0]], exact=True)
        assert p_value == pytest.approx(reference.pvalue, rel=1e-7)


def test_holm_of_four_p_values() -> None:
    # Ascending: 0.005 * 4, 0.01 * 3, 0.03 * 2, and 0.04 * 1, which may not fall below the one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1, 1]
    assert holm([]) == []
    with pytest.raises(DataError, match="p-values"):
        holm([math.nan])


@settings(deadline=None, max_examples=15)
@given(PROBABILITIES)
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist())
