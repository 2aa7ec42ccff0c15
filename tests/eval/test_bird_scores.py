"""BIRD's soft F1 and efficiency scores, on examples worked out by hand."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merit_sql.domain.execution import Row
from merit_sql.eval.efficiency import reward_ves, time_ratio, ves
from merit_sql.eval.soft_f1 import soft_f1


@pytest.mark.parametrize(
    ("gold", "predicted", "score"),
    [
        pytest.param([], [], 1.0, id="both empty"),
        pytest.param([(1,)], [], 0.0, id="nothing found"),
        pytest.param([], [(1,)], 0.0, id="nothing wanted"),
        pytest.param([(1, 2)], [(1, 2)], 1.0, id="equal"),
        pytest.param([(1, 2)], [(2, 1)], 1.0, id="membership, not position"),
        pytest.param([(1,), (1,), (2,)], [(1,), (2,), (2,)], 1.0, id="duplicates are dropped"),
        pytest.param([(1,), (2,)], [(2,), (1,)], 0.0, id="rows are paired by place"),
        # TP 1/2, FP 1/2, FN 1/2: P = R = 1/2
        pytest.param([(1, 2)], [(1, 3)], 0.5, id="half a row"),
        # TP 1/2, FP 0, FN 1/2: P = 1, R = 1/2
        pytest.param([(1, 2)], [(1,)], 2 / 3, id="a column is missing"),
        # TP 1, FP 1 (over one gold column), FN 0: P = 1/2, R = 1
        pytest.param([(1,)], [(1, 9)], 2 / 3, id="a column too many"),
        # TP 2 (over one gold column), FP 0, FN 0
        pytest.param([(1,)], [(1, 1)], 1.0, id="a match may exceed one"),
        # rows: (1) matched, (2) missing: TP 1, FN 1: P = 1, R = 1/2
        pytest.param([(1,), (2,)], [(1,)], 2 / 3, id="a row is missing"),
        # rows: (1) matched, (2) extra: TP 1, FP 1
        pytest.param([(1,)], [(1,), (2,)], 2 / 3, id="a row too many"),
        # row 1: TP 1/2 FP 1/2 FN 1/2; row 2: FN 1. P = 1/2, R = (1/2) / 2 = 1/4
        pytest.param([(1, 2), (3, 4)], [(1, 5)], 1 / 3, id="half a row and a missing one"),
        pytest.param([(None,)], [(None,)], 1.0, id="NULL is found"),
        pytest.param([(1,)], [("1",)], 0.0, id="text is no number"),
    ],
)
def test_soft_f1(gold: list[Row], predicted: list[Row], score: float) -> None:
    assert soft_f1(gold, predicted) == pytest.approx(score)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=5),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=5),
)
def test_soft_f1_of_equal_shapes_is_a_share(gold: list[Row], predicted: list[Row]) -> None:
    assert 0 <= soft_f1(gold, predicted) <= 1
    assert soft_f1(gold, gold) == 1


def test_the_time_ratio_is_the_mean_of_the_ratios() -> None:
    assert time_ratio([2.0, 4.0], [1.0, 1.0]) == pytest.approx(3.0)


def test_equal_times_do_not_divide_by_zero() -> None:
    assert time_ratio([0.5] * 100, [0.5] * 100) == 1.0
    assert time_ratio([0.0] * 100, [0.0] * 100) == 1.0


def test_a_ratio_three_deviations_off_is_dropped() -> None:
    # 99 ratios of 1 and one of 101: mean 2, population deviation sqrt(99) = 9.95, so 101 lies outside.
    assert time_ratio([1.0] * 99 + [101.0], [1.0] * 100) == pytest.approx(1.0)
    # One of 9 with an outlier: mean 1.8889, deviation 2.51, 3 deviations reach 9.43: 9 stays.
    assert time_ratio([1.0] * 8 + [9.0], [1.0] * 9) == pytest.approx(17 / 9)


@pytest.mark.parametrize(
    ("ratio", "reward"),
    [
        (2.5, 1.25),
        (2.0, 1.25),
        (1.99, 1.0),
        (1.0, 1.0),
        (0.99, 0.75),
        (0.5, 0.75),
        (0.49, 0.5),
        (0.25, 0.5),
        (0.24, 0.25),
    ],
)
def test_the_steps_of_the_reward(ratio: float, reward: float) -> None:
    assert reward_ves(ratio) == math.sqrt(reward)


def test_ves_is_the_root_of_the_ratio() -> None:
    assert ves(2.25) == 1.5
