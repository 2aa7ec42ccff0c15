"""Where a stream gains, on four episodes worked out by hand."""

from collections.abc import Callable

import pytest

from merit_sql.domain.episode import AttemptDict, EpisodeRecord
from merit_sql.domain.memory import Observation, Provenance
from merit_sql.domain.status import Polarity, Regime, Status
from merit_sql.eval.breakdowns import (
    RIGHT,
    Group,
    Memory,
    by_database,
    by_difficulty,
    by_failure_type,
    learning_curve,
    memory_growth,
    success_by_step,
    type_flow,
)
from merit_sql.eval.datasets import Question

Build = Callable[..., AttemptDict]
CORRECT = {"status": "CORRECT", "opinion": "confirmed", "official": 1.0, "strict": 1, "failure": None}
SCHEMA = {"failure": {"type": "Schema Linking", "subtype": "Missing Column", "decided_by": "no such column"}}


def record(position: int, database: str, attempts: list[AttemptDict]) -> EpisodeRecord:
    return EpisodeRecord(
        run="r",
        method="m",
        regime=Regime.DENOTATION_CONFIRMED,
        query_id=str(position),
        database_id=database,
        position=position,
        status=Status(attempts[-1]["status"]),
        confirmed_by=None,
        sql=attempts[-1]["sql"],
        attempts=attempts,
        reflections=[],
        memory_ids=[],
    )


@pytest.fixture
def records(attempt: Build) -> list[EpisodeRecord]:
    return [
        record(0, "b", [attempt(0, "A", **CORRECT)]),
        record(1, "b", [attempt(0, "A", **SCHEMA), attempt(1, "B", **CORRECT)]),
        record(2, "a", [attempt(0, "A", **SCHEMA), attempt(1, "B"), attempt(2, "C")]),
        record(3, "b", [attempt(0, "A"), attempt(1, "B"), attempt(2, "C", **CORRECT)]),
    ]


def test_groups(records: list[EpisodeRecord]) -> None:
    assert by_database(records) == [
        Group(name="a", questions=1, initially_right=0, finally_right=0),
        Group(name="b", questions=3, initially_right=1, finally_right=3),
    ]
    assert by_failure_type(records) == [
        Group(name="Schema Linking", questions=2, initially_right=0, finally_right=1),
        Group(name="Result Mismatch", questions=1, initially_right=0, finally_right=1),
    ]
    assert [(group.initially_wrong, group.repaired) for group in by_database(records)] == [(1, 0), (2, 2)]


def test_success_by_step(records: list[EpisodeRecord]) -> None:
    assert success_by_step(records, 3) == [0.25, 0.5, 0.75, 0.75]
    assert success_by_step([], 3) == []


def test_the_learning_curve(records: list[EpisodeRecord]) -> None:
    assert learning_curve(records) == [(0, 0), (1, 1), (2, 1), (3, 2)]


def test_the_flow_between_types(records: list[EpisodeRecord]) -> None:
    assert type_flow(records) == {
        ("Schema Linking", RIGHT): 1,
        ("Schema Linking", "Result Mismatch"): 1,
        ("Result Mismatch", "Result Mismatch"): 2,
        ("Result Mismatch", RIGHT): 1,
    }


def test_by_difficulty_asks_the_questions(records: list[EpisodeRecord]) -> None:
    levels = {"0": "easy", "1": "extra", "2": "unknown", "3": "extra"}
    questions = {
        key: Question(id=int(key), database_id="b", question="?", evidence="", difficulty=level)
        for key, level in levels.items()
    }
    assert by_difficulty(records, questions) == [
        Group(name="easy", questions=1, initially_right=1, finally_right=1),
        Group(name="extra", questions=2, initially_right=0, finally_right=2),
        Group(name="unknown", questions=1, initially_right=0, finally_right=0),
    ]


def observed(position: int, polarity: Polarity) -> Observation:
    provenance = Provenance(
        run="r",
        method="m",
        regime=Regime.DENOTATION_CONFIRMED,
        query_id=str(position),
        database_id="b",
        position=position,
        polarity=polarity,
        step=1,
        retrieved_ids=(),
    )
    return Observation(entry_id=f"e{position}", provenance=provenance, content=None)


def test_memory_grows_by_what_episodes_leave_and_counts_each_showing(attempt: Build) -> None:
    stream = [
        record(0, "b", [attempt(0, "A"), attempt(1, "B", **CORRECT)]),
        record(1, "b", [attempt(0, "A", **CORRECT)]),
        record(
            2, "b", [attempt(0, "A"), attempt(1, "B", memory_ids=["e0"]), attempt(2, "C", memory_ids=["e0"])]
        ),
        record(3, "b", [attempt(0, "A"), attempt(1, "B", memory_ids=["e0", "e2"], **CORRECT)]),
    ]
    left = [
        observed(0, Polarity.POSITIVE),
        None,
        observed(2, Polarity.NEGATIVE),
        observed(3, Polarity.POSITIVE),
    ]
    assert memory_growth(stream, left) == [
        Memory(positives=1, negatives=0, shown=0),
        Memory(positives=1, negatives=0, shown=0),
        Memory(positives=1, negatives=1, shown=2),
        Memory(positives=2, negatives=1, shown=4),
    ]
