"""A benchmark run on the bundled suite with a scripted model: streams, resume, repeat, leak."""

import json
import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import StreamMode

from merit_sql.domain.errors import DataError, IdentityError, MeritError
from merit_sql.eval.bench import Plan, RunResult, run_bench, select, stream_order
from merit_sql.eval.datasets import Suite
from merit_sql.eval.ledger import Ledger
from merit_sql.eval.metrics import Metrics
from merit_sql.eval.oracle import BenchmarkOracle, Verdicts
from merit_sql.eval.spider import SpiderEvaluator
from merit_sql.eval.streams import Quiet
from merit_sql.eval.suites import mini_questions
from merit_sql.eval.suites.load import load_mini
from merit_sql.graph.method import METHODS
from merit_sql.graph.repair import build_repair_graph
from merit_sql.models.hashing import HashingEncoder
from merit_sql.models.identity import identity
from merit_sql.models.record import RecordedChatModel, ReplyRecord, open_record
from merit_sql.models.scripted import ScriptedChatModel
from merit_sql.stores.episodic import EpisodicMemory

GOLDS = {item["question"]: item["query"] for item in mini_questions()}
WRONG = "(SELECT 1 AS n)"


def reply(prompt: str) -> str:
    """By the question's length modulo 3: right at first, right at the second revision, or never."""
    question = next(text for text in GOLDS if f"<question>\n{text}\n" in prompt)
    tried = prompt.count("\nAttempt ")
    if len(question) % 3 == 0 or (tried == 2 and len(question) % 3 == 1):
        return f"<answer>{GOLDS[question]}</answer>"
    return f"<answer>SELECT n{tried} FROM nowhere</answer>"


class StopAt(Quiet):
    """Ends the run in the middle, as a kill between two episodes would."""

    def __init__(self, episodes: int) -> None:
        self.left = episodes

    def advance(self, metrics: Metrics | None) -> None:
        if metrics is not None:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


PLAN = Plan(methods=(METHODS["iterative"], METHODS["merit"]), orders=(0, 1), limit=12, budget=3)


@pytest.fixture(scope="module")
def mini() -> Iterator[Suite]:
    suite = load_mini()
    with suite.catalogue:
        yield suite


def go(suite: Suite, out: Path, plan: Plan = PLAN, watcher: Quiet | None = None) -> RunResult:
    model = ScriptedChatModel(replies=reply)
    out.mkdir(exist_ok=True)
    record = ReplyRecord(out / "replies.sqlite")
    try:
        return run_bench(
            plan=plan,
            suite=suite,
            model=RecordedChatModel(inner=model, records=[record], identity=identity(model)),
            encoder=HashingEncoder,
            verdicts=Verdicts(own=record),
            out=out,
            watcher=watcher or Quiet(),
        )
    finally:
        record.close()


def ledgers(out: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in sorted(out.glob("*/episodes.jsonl"))}


@pytest.fixture(scope="module")
def finished(mini: Suite, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RunResult]:
    out = tmp_path_factory.mktemp("finished") / "run"
    return out, go(mini, out)


def test_the_script_repairs_what_it_was_written_to_repair(finished: tuple[Path, RunResult]) -> None:
    _, result = finished
    questions = [question.question for question in result.selection.questions]
    right = sum(len(text) % 3 == 0 for text in questions)
    repairable = sum(len(text) % 3 == 1 for text in questions)
    lost = len(questions) - right - repairable
    assert right and repairable and lost
    assert [(stream.method, stream.order) for stream in result.streams] == [
        ("iterative", 0),
        ("iterative", 1),
        ("merit", 0),
        ("merit", 1),
    ]
    for stream in result.streams:
        metrics = stream.metrics
        assert (metrics.questions, metrics.correct) == (12, right + repairable)
        assert (metrics.repaired, metrics.regressions) == (repairable, 0)
        assert metrics.generations == 2 * repairable + 3 * lost
        assert metrics.calls == 12 + metrics.generations
        assert metrics.official == metrics.correct


def test_a_stream_is_the_selection_shuffled_by_its_order(finished: tuple[Path, RunResult]) -> None:
    import random

    _, result = finished
    expected = [str(question.id) for question in result.selection.questions]
    random.Random(1).shuffle(expected)
    assert [record.query_id for record in result.streams[1].records] == expected
    assert [record.position for record in result.streams[1].records] == list(range(12))


def test_memory_serves_only_what_earlier_questions_left(finished: tuple[Path, RunResult]) -> None:
    _, result = finished
    stream = result.streams[2]
    served = [(r.position, id_) for r in stream.records for a in r.attempts for id_ in a["memory_ids"]]
    assert served
    out, _ = finished
    lines = [json.loads(line) for line in (out / "merit-0/episodes.jsonl").read_bytes().splitlines()]
    born = {
        line["observation"]["entry_id"]: line["record"]["position"]
        for line in reversed(lines)
        if line["observation"]
    }
    assert all(born[id_] < position for position, id_ in served)


def test_the_initial_predictions_are_asked_for_once(finished: tuple[Path, RunResult]) -> None:
    out, result = finished
    rows = [json.loads(line) for line in (out / "initial.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [question.id for question in result.selection.questions]
    by_id = {str(row["id"]): row["sql"] for row in rows}
    for stream in result.streams:
        assert all(record.attempts[0]["sql"] == by_id[record.query_id] for record in stream.records)


@pytest.mark.parametrize("episodes", [1, 15, 40])
def test_a_run_that_was_stopped_goes_on_and_ends_with_the_same_bytes(
    mini: Suite, tmp_path: Path, finished: tuple[Path, RunResult], episodes: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(mini, tmp_path / "run", watcher=StopAt(episodes))
    assert sum(data.count(b"\n") for data in ledgers(tmp_path / "run").values()) == episodes
    again = go(mini, tmp_path / "run")
    assert ledgers(tmp_path / "run") == ledgers(finished[0])
    assert [s.metrics for s in again.streams] == [s.metrics for s in finished[1].streams]


def test_a_killed_process_goes_on_from_its_last_committed_episode(
    mini: Suite, tmp_path: Path, finished: tuple[Path, RunResult]
) -> None:
    out = tmp_path / "run"
    script = textwrap.dedent(
        f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from pathlib import Path
        import test_bench as t

        class Tell(t.Quiet):
            def advance(self, metrics):
                print("episode" if metrics else "initial", flush=True)

        suite = t.load_mini()
        t.go(suite, Path({str(out)!r}), watcher=Tell())
        """
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    seen = 0
    for line in child.stdout:
        seen += line == "episode\n"
        if seen == 20:
            os.kill(child.pid, signal.SIGKILL)
            break
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    assert sum(data.count(b"\n") for data in ledgers(out).values()) >= 20
    go(mini, out)
    assert ledgers(out) == ledgers(finished[0])


def test_a_replay_elsewhere_gives_the_same_bytes_and_asks_nothing(
    mini: Suite, tmp_path: Path, finished: tuple[Path, RunResult]
) -> None:
    earlier = open_record(finished[0] / "replies.sqlite")
    own = ReplyRecord(tmp_path / "replies.sqlite")
    model = RecordedChatModel(inner=None, records=[own, earlier], identity=earlier.identities()[0])
    result = run_bench(
        plan=PLAN,
        suite=mini,
        model=model,
        encoder=HashingEncoder,
        verdicts=Verdicts(own=own, earlier=[earlier]),
        out=tmp_path,
    )
    own.close()
    assert ledgers(tmp_path) == ledgers(finished[0])
    assert result.run == finished[1].run
    assert model.meter().calls == 0


def test_another_identity_is_refused_and_nothing_is_touched(
    mini: Suite, finished: tuple[Path, RunResult]
) -> None:
    out, _ = finished
    before = ledgers(out)
    with pytest.raises(IdentityError, match="budget: was 3, is 4"):
        go(mini, out, replace(PLAN, budget=4))
    assert ledgers(out) == before


def test_a_ledger_of_another_stream_is_refused(mini: Suite, tmp_path: Path) -> None:
    go(mini, tmp_path / "run")
    source, target = (tmp_path / "run" / name / "episodes.jsonl" for name in ("merit-1", "merit-0"))
    target.write_bytes(source.read_bytes())
    with pytest.raises(DataError, match="another stream"):
        go(mini, tmp_path / "run")


def journal_of_another_ledger(run: Path) -> None:
    source, target = (run / name / "memory/journal.jsonl" for name in ("merit-1", "merit-0"))
    target.write_bytes(source.read_bytes())


def journal_with_a_damaged_line(run: Path) -> None:
    path = run / "merit-0/memory/journal.jsonl"
    header, *lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + lines[0].replace(b"position", b"poSition") + b"".join(lines[1:]))


def journal_with_another_header(run: Path) -> None:
    path = run / "merit-0/memory/journal.jsonl"
    path.write_bytes(b"{}\n" + path.read_bytes())


def no_memory(run: Path) -> None:
    shutil.rmtree(run / "merit-0/memory")


@pytest.mark.parametrize(
    "damage", [journal_of_another_ledger, journal_with_a_damaged_line, journal_with_another_header, no_memory]
)
def test_a_memory_that_is_not_the_ledgers_is_made_again_from_it(
    mini: Suite, tmp_path: Path, finished: tuple[Path, RunResult], damage: Callable[[Path], None]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished[0], run)
    ledger, journal = run / "merit-0/episodes.jsonl", run / "merit-0/memory/journal.jsonl"
    whole = journal.read_bytes()
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:6]))
    damage(run)
    go(mini, run)
    assert ledgers(run) == ledgers(finished[0])
    assert journal.read_bytes() == whole


def test_initial_predictions_that_were_changed_are_refused(mini: Suite, tmp_path: Path) -> None:
    plan = replace(PLAN, methods=(METHODS["iterative"],), orders=(0,), limit=4)
    go(mini, tmp_path / "generated", plan)
    path = tmp_path / "generated/initial.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**row, "sql": "SELECT 'changed'"}) + "\n" for row in rows))
    with pytest.raises(DataError, match="another stream"):
        go(mini, tmp_path / "generated", plan)
    for damaged in ({"sql": None}, {"usage": {}}, {"usage": {"prompt_tokens": "1", "output_tokens": 1}}):
        path.write_text("".join(json.dumps({**row, **damaged}) + "\n" for row in rows))
        with pytest.raises(DataError, match=r"initial\.jsonl: is no file of initial predictions"):
            go(mini, tmp_path / "generated", plan)
    given = replace(plan, predictions=tuple("SELECT 1" for _ in mini.questions))
    go(mini, tmp_path / "given", given)
    path = tmp_path / "given/initial.jsonl"
    path.write_text(path.read_text().replace("SELECT 1", "SELECT 2"))
    with pytest.raises(DataError, match="other predictions than --initial"):
        go(mini, tmp_path / "given", given)


def test_streams_without_their_manifest_are_not_adopted(
    mini: Suite, tmp_path: Path, finished: tuple[Path, RunResult]
) -> None:
    shutil.copytree(finished[0], tmp_path / "run")
    (tmp_path / "run/manifest.json").unlink()
    with pytest.raises(IdentityError, match=r"manifest\.json is gone"):
        go(mini, tmp_path / "run")
    assert ledgers(tmp_path / "run") == ledgers(finished[0])


def test_damaged_timings_change_nothing_but_the_seconds(
    mini: Suite, tmp_path: Path, finished: tuple[Path, RunResult]
) -> None:
    go(mini, tmp_path / "run")
    (tmp_path / "run/merit-0/timings.jsonl").write_bytes(b"\xff\xfe\n5\n{}\n")
    again = go(mini, tmp_path / "run")
    assert again.streams[2].timings.seconds == 0
    assert [s.metrics for s in again.streams] == [s.metrics for s in finished[1].streams]


def test_a_second_process_in_the_same_folder_is_turned_away(mini: Suite, tmp_path: Path) -> None:
    entered, leave = threading.Event(), threading.Event()

    class Wait(Quiet):
        def advance(self, metrics: Metrics | None) -> None:
            entered.set()
            leave.wait(60)

    plan = replace(PLAN, methods=(METHODS["zero_shot"],), orders=(0,), limit=2)
    first = threading.Thread(target=go, args=(mini, tmp_path / "run", plan, Wait()))
    first.start()
    try:
        assert entered.wait(60)
        with pytest.raises(MeritError, match="another process"):
            go(mini, tmp_path / "run", plan)
    finally:
        leave.set()
        first.join()


CANARY = "c4n4ry"


def with_canaries(suite: Suite) -> Suite:
    """Every reference, and every row that it gives, carries the canary."""
    golds = {
        item["id"]: (item["db_id"], f"SELECT *, '{CANARY}' FROM ({item['query']})")
        for item in mini_questions()
    }
    return replace(suite, evaluator=SpiderEvaluator(suite.catalogue, golds))


def always_wrong(prompt: str) -> str:
    number = prompt.count("Attempt ")
    return f"<answer>SELECT {number if number < 4 else 'n'} FROM {WRONG}</answer>"


def test_no_gold_is_in_any_prompt_ledger_memory_or_record(mini: Suite, tmp_path: Path) -> None:
    model = ScriptedChatModel(replies=always_wrong)
    record = ReplyRecord(tmp_path / "replies.sqlite")
    run_bench(
        plan=replace(PLAN, methods=(METHODS["merit"], METHODS["merit_redraw"]), orders=(0,), limit=6),
        suite=with_canaries(mini),
        model=RecordedChatModel(inner=model, records=[record], identity=identity(model)),
        encoder=HashingEncoder,
        verdicts=Verdicts(own=record),
        out=tmp_path,
    )
    record.close()
    assert model.prompts and not any(CANARY in prompt for prompt in model.prompts)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "chroma.sqlite3" for path in files)
    assert not [path for path in files if CANARY.encode() in path.read_bytes()]


class Trace(BaseCallbackHandler):
    """Keeps everything that LangChain's callbacks tell."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda *args, **kwargs: self.told.append(repr((name, args, kwargs)))
        return super().__getattribute__(name)


def test_no_gold_is_in_any_state_checkpoint_trace_or_log(
    mini: Suite, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    suite, trace, saver = with_canaries(mini), Trace(), InMemorySaver()
    with closing(ReplyRecord(tmp_path / "replies.sqlite")) as record:
        oracle = BenchmarkOracle(evaluator=suite.evaluator, record=Verdicts(own=record), scope="s")
        with EpisodicMemory.in_memory(HashingEncoder()) as memory:
            ledger = Ledger(tmp_path / "episodes.jsonl")
            ledger.remember_in(memory)
            graph = build_repair_graph(
                ScriptedChatModel(replies=always_wrong),
                memory,
                oracle,
                suite.catalogue,
                METHODS["merit"],
                ledger,
            )
            graph.checkpointer = saver
            caplog.set_level(logging.DEBUG)
            shown = []
            for position in range(3):
                question = suite.questions[position]
                asked = {
                    "question": question.question,
                    "database_id": question.database_id,
                    "query_id": str(question.id),
                    "position": position,
                }
                config: RunnableConfig = {
                    "configurable": {"thread_id": str(position)},
                    "callbacks": [trace],
                }
                modes: list[StreamMode] = ["values", "updates", "debug", "messages", "custom"]
                shown += [repr(part) for part in graph.stream(asked, config, stream_mode=modes)]
            checkpoints = [repr(one) for one in saver.list(None)]
            entries = [repr(one) for one in memory.observations]
    for what in (shown, checkpoints, entries, trace.told):
        assert what and not [text for text in what if CANARY in text]
    assert any("on_chat_model_start" in text for text in trace.told)
    assert any("DENOTATION_MISMATCH" in text for text in shown)
    assert CANARY not in caplog.text


def test_a_gold_that_fails_leaves_n_and_its_error_appears_nowhere(mini: Suite) -> None:
    golds = {item["id"]: (item["db_id"], item["query"]) for item in mini_questions()}
    golds[1] = (golds[1][0], "SELECT secret_column FROM nowhere")
    suite = replace(mini, evaluator=SpiderEvaluator(mini.catalogue, golds))
    selection = select(suite, None, 3)
    assert [question.id for question in selection.questions] == [0, 2, 3]
    assert [question.id for question in selection.unscored] == [1]


def test_selection_is_databases_then_scorable_then_limit(mini: Suite) -> None:
    chosen = select(mini, ["freight_lines"], 4).questions
    expected = [item["id"] for item in mini_questions() if item["db_id"] == "freight_lines"][:4]
    assert [question.id for question in chosen] == expected
    with pytest.raises(DataError, match="nowhere"):
        select(mini, ["nowhere"], None)


def test_the_shuffle_is_the_protocols_own(mini: Suite) -> None:
    questions = select(mini, None, 5).questions
    assert [q.id for q in stream_order(questions, 0)] == [2, 1, 0, 4, 3]


def test_verdicts_are_recorded_under_keys_that_hold_no_text(finished: tuple[Path, RunResult]) -> None:
    with sqlite3.connect(finished[0] / "replies.sqlite") as connection:
        rows = connection.execute("SELECT key, value FROM verdicts").fetchall()
    connection.close()
    assert rows and all(len(key) == 64 and "SELECT" not in value for key, value in rows)
