"""Every method on a slice of the bundled suite: two runs are equal, one of them killed twenty times."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from merit_sql.eval.runs import load_run
from merit_sql.graph.method import METHODS
from merit_sql.models.hashing import HashingEncoder
from merit_sql.stores.episodic import EpisodicMemory

SCRIPT = Path(__file__).with_name("killed_run.py")
SITES = [
    ("initial", "before"), ("initial", "after"),
    ("ledger", "before"), ("ledger", "torn"), ("ledger", "after"),
    ("journal", "before"), ("journal", "torn"), ("journal", "after"),
    ("chroma", "before"), ("chroma", "torn"), ("chroma", "after"),
    ("timings", "torn"),
]  # fmt: skip
"""Each is hit once; the rest of the twenty kills come by the clock."""

KILLS = 20


def start(out: Path, fault: dict[str, object]) -> "subprocess.Popen[str]":
    command = [sys.executable, str(SCRIPT), str(out), json.dumps(fault)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def faults() -> list[dict[str, object]]:
    generator = random.Random(20)
    chosen: list[dict[str, object]] = [
        {"site": site, "when": when, "count": 1 if site == "initial" else generator.randint(5, 30)}
        for site, when in SITES
    ]
    by_clock = [
        {"site": "clock", "when": "", "count": generator.randint(2_500, 5_000)}
        for _ in range(KILLS - len(SITES))
    ]
    later = chosen[2:] + by_clock
    generator.shuffle(later)
    return chosen[:2] + later


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, int]:
    """A run that nothing disturbs, one that is killed and goes on, and how often it was killed."""
    whole, killed = (tmp_path_factory.mktemp("runs") / name for name in ("whole", "killed"))
    kills = 0
    with start(whole, {}) as undisturbed:
        for fault in faults():
            with start(killed, fault) as child:
                child.communicate()
            kills += child.returncode == -signal.SIGKILL
        with start(killed, {}) as last:
            _, told = last.communicate()
        assert last.returncode == 0, told
        _, told = undisturbed.communicate()
        assert undisturbed.returncode == 0, told
    return whole, killed, kills


@pytest.mark.timeout(900)
def test_a_run_that_was_killed_twenty_times_has_the_same_bytes(runs: tuple[Path, Path, int]) -> None:
    whole, killed, kills = runs
    assert kills == KILLS
    streams = sorted(path.parent.name for path in whole.glob("*/episodes.jsonl"))
    assert streams == sorted(f"{name}-{order}" for name in list(METHODS)[:12] for order in (0, 1, 2))
    for name in ("initial.jsonl", "questions.jsonl", "schemas.json", "manifest.json"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    for stream in streams:
        kept = ["episodes.jsonl"]
        if METHODS[stream.rpartition("-")[0]].remembers:
            kept.append("memory/journal.jsonl")
        for name in kept:
            assert (killed / stream / name).read_bytes() == (whole / stream / name).read_bytes(), stream


def test_what_chroma_holds_survived_too(runs: tuple[Path, Path, int]) -> None:
    whole, killed, _ = runs

    class Unasked(HashingEncoder):
        def encode(self, texts: object) -> object:  # type: ignore[override]
            raise AssertionError(f"a vector was missing: {texts}")

    for stream in ("merit-0", "dynamic_rag-2", "cross_database_only-1"):
        digests = []
        for run in (whole, killed):
            with EpisodicMemory.open(run / stream / "memory", Unasked()) as memory:
                digests.append(memory.digest())
        assert digests[0] == digests[1]


def test_the_streams_are_what_their_methods_say(runs: tuple[Path, Path, int]) -> None:
    run = load_run(runs[0])
    streams = {(stream.method, stream.order): stream for stream in run.streams}
    assert len(streams) == 36 and all(len(stream.records) == 40 for stream in run.streams)
    metrics = {key: stream.metrics for key, stream in streams.items()}
    wrong = metrics["zero_shot", 0].initially_wrong
    assert {one.initially_wrong for one in metrics.values()} == {wrong}
    assert {metrics["zero_shot", order].generations for order in (0, 1, 2)} == {0}
    for order in (0, 1, 2):
        reflexion, iterative = metrics["reflexion", order], metrics["iterative", order]
        unresolved = wrong - reflexion.repaired
        # A reflection follows every failed attempt: one more than the revisions where none was right.
        assert reflexion.reflection.calls == reflexion.generations + unresolved
        assert reflexion.repaired == iterative.repaired
        assert iterative == metrics["iterative", 0]
        kept = {
            name: {one.provenance.polarity.value for one in streams[name, order].observations if one}
            for name in ("iterative", "dynamic_rag", "positive_only", "merit")
        }
        assert kept["merit"] == {"positive", "negative"}
        assert kept["dynamic_rag"] == kept["positive_only"] == {"positive"}
        for record in streams["cross_database_only", order].records:
            for attempt in record.attempts:
                sources = [source for memory in attempt["memories"] for source in memory["sources"]]
                assert record.database_id not in {source["database_id"] for source in sources}
        for method in ("merit", "dynamic_rag", "random_same_type", "no_dense"):
            for record in streams[method, order].records:
                for attempt in record.attempts:
                    for memory in attempt["memories"]:
                        assert all(source["position"] < record.position for source in memory["sources"])
                        assert all(source["query_id"] != record.query_id for source in memory["sources"])


def test_methods_without_memory_make_their_real_calls_once(runs: tuple[Path, Path, int]) -> None:
    run = load_run(runs[0])
    for method in ("iterative", "reflexion"):
        streams = [stream for stream in run.streams if stream.method == method]
        assert len({stream.metrics.calls for stream in streams}) == 1
        real = {stream.order: stream.timings.real_calls for stream in streams}
        assert real[1] == real[2] == 0
    iterative = next(stream for stream in run.streams if (stream.method, stream.order) == ("iterative", 0))
    own = {(one.database_id, one.query_id) for one in iterative.records if len(one.attempts) > 1}
    assert 0 < iterative.timings.real_calls <= iterative.metrics.repair.calls
    assert len(own) == iterative.metrics.initially_wrong
