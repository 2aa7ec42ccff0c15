"""Seconds by part: what runs inside another part counts once, and rows that a kill tore are passed over."""

import time
from pathlib import Path

import pytest

from merit_sql.eval.timings import Stopwatch, Timings, note_timings, read_timings


def test_a_part_inside_another_does_not_count_twice() -> None:
    watch = Stopwatch()
    with watch.timing("retrieval"):
        with watch.timing("encoder"):
            time.sleep(0.05)
        time.sleep(0.01)
    spent = watch.take()
    assert spent["encoder"] >= 0.05
    assert 0.01 <= spent["retrieval"] < 0.05
    assert watch.take() == {}


def test_rows_are_summed_and_torn_ones_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "timings.jsonl"
    assert read_timings(path) == Timings()
    note_timings(path, {"position": 0, "seconds": 1.5, "real_calls": 2, "model_seconds": 1.0})
    path.write_bytes(path.read_bytes() + b'{"seconds": 9')
    note_timings(path, {"position": 1, "seconds": 0.25, "real_calls": 1, "database_seconds": 0.12345})
    assert read_timings(path) == Timings(
        episodes=2, seconds=1.75, model_seconds=1.0, database_seconds=pytest.approx(0.123), real_calls=3
    )
