"""The figures of a stream, each worked out by hand on four episodes."""

from collections.abc import Callable

import pytest

from merit_sql.domain.episode import AttemptDict, EpisodeRecord
from merit_sql.domain.status import Regime, Status
from merit_sql.eval.metrics import Cost, Metrics, Tokens, measure, oscillates

Build = Callable[..., AttemptDict]
RIGHT = {"status": "CORRECT", "opinion": "confirmed", "official": 1.0, "strict": 1}


def record(position: int, attempts: list[AttemptDict]) -> EpisodeRecord:
    last = attempts[-1]
    return EpisodeRecord(
        run="r",
        method="m",
        regime=Regime.DENOTATION_CONFIRMED,
        query_id=str(position),
        database_id="d",
        position=position,
        status=Status(last["status"]),
        confirmed_by=last["confirmed_by"],
        sql=last["sql"],
        attempts=attempts,
        reflections=[],
        memory_ids=[],
    )


@pytest.fixture
def records(attempt: Build) -> list[EpisodeRecord]:
    return [
        record(0, [attempt(0, "A", **RIGHT)]),
        record(1, [attempt(0, "A"), attempt(1, "B", **RIGHT)]),
        record(2, [attempt(0, "A"), attempt(1, "B"), attempt(2, "a ;")]),
        record(3, [attempt(0, "A"), attempt(1, "B", official=1.0)]),
    ]


def test_the_figures_of_four_episodes(records: list[EpisodeRecord]) -> None:
    metrics = measure(records, [{"prompt_tokens": 50, "output_tokens": 5}] * 4)
    assert metrics == Metrics(
        questions=4,
        correct=2,
        official=3.0,
        initially_wrong=3,
        repaired=1,
        regressions=0,
        generations=4,
        oscillating=1,
        executions=1 + 2 + 3 + 2,
        initial=Cost(calls=4, prompt_tokens=Tokens(known=4 * 50), output_tokens=Tokens(known=4 * 5)),
        repair=Cost(calls=4, prompt_tokens=Tokens(known=4 * 100), output_tokens=Tokens(known=4 * 10)),
        reflection=Cost(),
    )
    assert metrics.calls == 4 + 4
    assert metrics.prompt_tokens == Tokens(known=4 * 50 + 4 * 100)
    assert metrics.output_tokens == Tokens(known=4 * 5 + 4 * 10)
    assert metrics.execution_accuracy == 0.5
    assert metrics.official_accuracy == 0.75
    assert metrics.steps == pytest.approx(4 / 3)
    assert metrics.oscillation == 0.25
    assert metrics.oscillation_of_wrong == pytest.approx(1 / 3)


def test_given_predictions_cost_no_calls_and_unknown_tokens(records: list[EpisodeRecord]) -> None:
    metrics = measure(records, [None] * 4)
    assert metrics.calls == 4
    assert metrics.prompt_tokens == Tokens(known=400, unknown=4)


def test_no_episode_has_no_ratio() -> None:
    metrics = measure([], [])
    assert metrics.execution_accuracy is None and metrics.steps is None


@pytest.mark.parametrize(
    ("sqls", "repeats"),
    [
        (["SELECT 1", "select  1;"], True),
        (["SELECT 'a'", "SELECT 'A'"], True),
        (["SELECT 1", "SELECT 2", "SELECT 1"], True),
        (["SELECT 1", "SELECT 2"], False),
        (["SELECT 1"], False),
    ],
)
def test_oscillation_compares_stripped_lower_cased_text(sqls: list[str], repeats: bool) -> None:
    assert oscillates(sqls) is repeats
