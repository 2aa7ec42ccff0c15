"""Draws and repeats: when a reply is refused, and how much warmer the next one is."""

from collections.abc import Callable

import pytest

from merit_sql.domain.episode import AttemptDict
from merit_sql.nodes.generate import decoding_of, repeat_of
from merit_sql.nodes.state import standing_attempt

Build = Callable[..., AttemptDict]


@pytest.mark.parametrize(
    ("repeats", "temperature", "seed"),
    [(0, 0.0, None), (1, 0.4, 1), (2, 0.8, 2), (3, 1.2, 3), (5, 1.2, 5)],
)
def test_each_refused_repeat_makes_the_next_draw_warmer(
    attempt: Build, repeats: int, temperature: float, seed: int | None
) -> None:
    attempts = [attempt(0, "A"), attempt(1, "B")]
    attempts += [attempt(2 + n, "A", repeat_of=0, draw=n) for n in range(repeats)]
    decoding = decoding_of(attempts, 300)
    assert (decoding.temperature, decoding.seed, decoding.draw) == (temperature, seed, repeats)


def test_a_new_attempt_after_repeats_is_greedy_again(attempt: Build) -> None:
    attempts = [attempt(0, "A"), attempt(1, "A", repeat_of=0), attempt(2, "B", draw=1)]
    assert decoding_of(attempts, 300).temperature == 0.0


@pytest.mark.parametrize(
    ("sql", "step"),
    [
        ("select  a from t", 0),
        ("SELECT a FROM t ;", 0),
        ("SELECT a FROM t WHERE b = 'x'", 1),
        ("SELECT a FROM t WHERE b='x'", 1),
        ("SELECT a FROM t WHERE b = 'X'", None),
        ("SELECT b FROM t", None),
    ],
)
def test_a_repeat_is_the_same_normal_form_and_literals_count(
    attempt: Build, sql: str, step: int | None
) -> None:
    attempts = [attempt(0, "SELECT a FROM t"), attempt(1, "SELECT a FROM t WHERE b = 'x'")]
    assert repeat_of(sql, attempts) == step


def test_feedback_and_retrieval_are_about_the_newest_attempt_that_is_no_repeat(attempt: Build) -> None:
    attempts = [attempt(0, "A"), attempt(1, "B"), attempt(2, "A", repeat_of=0)]
    assert standing_attempt(attempts)["sql"] == "B"
