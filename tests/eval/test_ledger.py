"""The ledger: durable, ordered, mended where a kill tore it, and the source of a lagging memory."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from merit_sql.domain.episode import AttemptDict, Case, EpisodeRecord
from merit_sql.domain.errors import DataError
from merit_sql.domain.memory import Observation
from merit_sql.domain.status import Polarity, Regime, Status
from merit_sql.eval.ledger import ForeignMemoryError, Ledger, append_line
from merit_sql.models.hashing import HashingEncoder
from merit_sql.nodes.finalize import Origin, observe
from merit_sql.stores.episodic import EpisodicMemory

Build = Callable[..., AttemptDict]
Make = Callable[[int], tuple[EpisodeRecord, Observation | None]]


@pytest.fixture
def episode(attempt: Build) -> Make:
    def make(position: int) -> tuple[EpisodeRecord, Observation | None]:
        attempts = [attempt(0, f"SELECT {position}"), attempt(1, f"SELECT {position}, 'é\n'")]
        case = Case(query_id=f"q{position}", database_id="d", question="?", position=position)
        origin = Origin(run="r", method="merit", regime=Regime.DENOTATION_CONFIRMED)
        record = EpisodeRecord(
            run="r",
            method="merit",
            regime=Regime.DENOTATION_CONFIRMED,
            query_id=case.query_id,
            database_id="d",
            position=position,
            status=Status.DENOTATION_MISMATCH,
            confirmed_by=None,
            sql=attempts[-1]["sql"],
            attempts=attempts,
            reflections=[],
            memory_ids=[],
        )
        observation = observe(case, attempts, schema="S", origin=origin, kept=frozenset(Polarity))
        return record, observation

    return make


def test_what_was_committed_comes_back(tmp_path: Path, episode: Make) -> None:
    path = tmp_path / "episodes.jsonl"
    ledger = Ledger(path)
    for position in range(3):
        ledger.commit(*episode(position))
    assert Ledger(path).records == [episode(position)[0] for position in range(3)]


def test_a_torn_last_line_is_cut_off_and_written_again_alike(tmp_path: Path, episode: Make) -> None:
    path = tmp_path / "episodes.jsonl"
    ledger = Ledger(path)
    for position in range(2):
        ledger.commit(*episode(position))
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in (first, first + 1, len(whole) - 1):
        path.write_bytes(whole[:cut])
        torn = Ledger(path)
        assert len(torn.records) == 1
        torn.commit(*episode(1))
        assert path.read_bytes() == whole


def test_a_damaged_line_in_the_middle_is_an_error_that_names_it(tmp_path: Path, episode: Make) -> None:
    path = tmp_path / "episodes.jsonl"
    ledger = Ledger(path)
    for position in range(3):
        ledger.commit(*episode(position))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"record": 1}\n' + lines[2])
    with pytest.raises(DataError, match=r"episodes\.jsonl:2"):
        Ledger(path)
    path.write_bytes(lines[0] + lines[2])
    with pytest.raises(DataError, match=r"episodes\.jsonl:2.*position 2, expected 1"):
        Ledger(path)


def test_positions_follow_one_another(tmp_path: Path, episode: Make) -> None:
    ledger = Ledger(tmp_path / "episodes.jsonl")
    with pytest.raises(ValueError, match="position 1 cannot follow 0"):
        ledger.commit(*episode(1))


def test_a_line_after_a_torn_one_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "timings.jsonl"
    append_line(path, '{"a": 1}')
    path.write_bytes(path.read_bytes() + b'{"tor')
    append_line(path, '{"a": 2}')
    assert path.read_bytes() == b'{"a": 1}\n{"tor\n{"a": 2}\n'


def test_a_lagging_memory_is_brought_up_to_the_ledger(tmp_path: Path, episode: Make) -> None:
    path = tmp_path / "episodes.jsonl"
    with EpisodicMemory.in_memory(HashingEncoder()) as complete:
        ledger = Ledger(path)
        ledger.remember_in(complete)
        for position in range(3):
            ledger.commit(*episode(position))
        with EpisodicMemory.in_memory(HashingEncoder()) as lagging:
            lagging.commit(json_round_trip(path, 0))
            Ledger(path).remember_in(lagging)
            assert lagging.digest() == complete.digest()


def test_a_memory_of_another_ledger_is_refused_and_left_alone(tmp_path: Path, episode: Make) -> None:
    path = tmp_path / "episodes.jsonl"
    ledger = Ledger(path)
    for position in range(2):
        ledger.commit(*episode(position))
    for foreign in ([ledger.observations[1]], [*ledger.observations, episode(2)[1]]):
        with EpisodicMemory.in_memory(HashingEncoder()) as memory:
            memory.commit_all(foreign)
            digest = memory.digest()
            with pytest.raises(ForeignMemoryError, match="not made from this ledger"):
                Ledger(path).remember_in(memory)
            assert memory.digest() == digest


def json_round_trip(path: Path, line: int) -> Observation:
    from merit_sql.stores.records import observation_from_dict

    return observation_from_dict(json.loads(path.read_bytes().splitlines()[line])["observation"])
