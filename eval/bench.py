"""The benchmark runner: streams of episodes over a suite, on disk, resumable, repeatable."""

import fcntl
import json
import logging
import random
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from merit_sql.domain.encoder import Encoder
from merit_sql.domain.episode import Case, EpisodeRecord
from merit_sql.domain.errors import DataError, IdentityError, MeritError
from merit_sql.eval.datasets import Question, Suite
from merit_sql.eval.identity import identity_of
from merit_sql.eval.initial import (
    InitialPrediction,
    case_of,
    generate_initial,
    given_initial,
    read_initial_file,
    write_initial_file,
)
from merit_sql.eval.ledger import ForeignMemoryError, Ledger, append_line
from merit_sql.eval.manifest import claim, run_id
from merit_sql.eval.metrics import Metrics, measure
from merit_sql.eval.oracle import DenotationOracle, VerdictRecord
from merit_sql.graph.method import Method
from merit_sql.graph.repair import build_repair_graph
from merit_sql.graph.stream import run_stream
from merit_sql.models.record import RecordedChatModel
from merit_sql.stores.episodic import EpisodicMemory
from merit_sql.stores.journal import JournalDamagedError
from merit_sql.stores.ranking import RetrievalPolicy

_logger = logging.getLogger(__name__)


class BusyError(MeritError):
    """Another process is at work in the same run folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a benchmark run is asked to do.

    `databases` is None for all of them, `limit` for every scorable question. `predictions` are the initial
    predictions aligned to the whole dataset, or None where the model writes them.
    """

    methods: tuple[Method, ...]
    orders: tuple[int, ...] = (0,)
    databases: tuple[str, ...] | None = None
    limit: int | None = None
    budget: int = 7
    predictions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The questions of a run in dataset order, and those passed over because nothing can score them."""

    questions: tuple[Question, ...]
    unscored: tuple[Question, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamResult:
    """One finished stream: its records in stream order, its metrics, and this machine's seconds for it."""

    method: str
    order: int
    records: tuple[EpisodeRecord, ...]
    metrics: Metrics
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """All streams of a run."""

    run: str
    selection: Selection
    streams: tuple[StreamResult, ...]
    initial_given: bool


class Watcher(Protocol):
    """Who looks on while a run goes."""

    def begin(self, title: str, total: int, done: int) -> None:
        """A stage of `total` steps begins, `done` of which were finished by an earlier run."""
        ...

    def advance(self, metrics: Metrics | None) -> None:
        """One step more; `metrics` are those of the stream so far."""
        ...


def select(suite: Suite, databases: Sequence[str] | None, limit: int | None) -> Selection:
    """Choose in dataset order: the databases named, then what can be scored, then the first `limit`.

    Raises `DataError` for a database that no question is about, and where nothing is left.
    """
    known = {question.database_id for question in suite.questions}
    unknown = sorted(set(databases or ()) - known)
    if unknown:
        raise DataError(
            f"the suite {suite.name} has no questions on {', '.join(unknown)}; "
            f"it has: {', '.join(sorted(known))}"
        )
    chosen: list[Question] = []
    unscored: list[Question] = []
    for question in suite.questions:
        if databases is not None and question.database_id not in databases:
            continue
        if limit is not None and len(chosen) == limit:
            break
        (chosen if suite.evaluator.scorable(question.id) else unscored).append(question)
    if not chosen:
        raise DataError(f"no question of the suite {suite.name} that was asked for can be scored")
    return Selection(questions=tuple(chosen), unscored=tuple(unscored))


def stream_order(questions: Sequence[Question], order: int) -> list[Question]:
    """The questions shuffled by ``random.Random(order).shuffle``, as the protocol orders a stream."""
    shuffled = list(questions)
    random.Random(order).shuffle(shuffled)  # noqa: S311 - the protocol's own shuffle, not a secret
    return shuffled


def run_bench(
    *,
    plan: Plan,
    suite: Suite,
    model: RecordedChatModel,
    encoder: Callable[[], Encoder],
    verdicts: VerdictRecord,
    out: Path,
    watcher: Watcher,
) -> RunResult:
    """Run, or go on with, every stream of `plan` in the folder `out`.

    The encoder is asked for once, and only if some method remembers. Raises `IdentityError` where `out`
    holds a run of other settings, `BusyError` where another process works in it.
    """
    selection = select(suite, plan.databases, plan.limit)
    shared_encoder = encoder() if any(method.remembers for method in plan.methods) else None
    identity = identity_of(plan, suite, selection.questions, model, shared_encoder)
    claim(out, identity)
    with _alone(out):
        initial = _initial(plan=plan, suite=suite, selection=selection, model=model, out=out, watcher=watcher)
        context = _Context(
            plan=plan,
            suite=suite,
            model=model,
            encoder=shared_encoder,
            oracle=DenotationOracle(
                evaluator=suite.evaluator,
                record=verdicts,
                scope=json.dumps(identity["scoring"], sort_keys=True),
            ),
            run=run_id(identity),
            initial={one.question_id: one for one in initial},
            watcher=watcher,
        )
        streams = [
            _run_stream(context, method, order, stream_order(selection.questions, order), out)
            for method in plan.methods
            for order in plan.orders
        ]
    return RunResult(
        run=context.run,
        selection=selection,
        streams=tuple(streams),
        initial_given=plan.predictions is not None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    plan: Plan
    suite: Suite
    model: RecordedChatModel
    encoder: Encoder | None
    oracle: DenotationOracle
    run: str
    initial: dict[int, InitialPrediction]
    watcher: Watcher


def _initial(
    *, plan: Plan, suite: Suite, selection: Selection, model: RecordedChatModel, out: Path, watcher: Watcher
) -> list[InitialPrediction]:
    path = out / "initial.jsonl"
    given = None if plan.predictions is None else given_initial(selection.questions, plan.predictions)
    if path.exists():
        initial = read_initial_file(path, selection.questions)
        if given is not None and initial != given:
            raise DataError(
                f"{path}: holds other predictions than --initial; restore it, or choose another --out"
            )
        return initial
    if given is not None:
        initial = given
    else:
        watcher.begin("initial predictions", len(selection.questions), 0)
        initial = generate_initial(
            model,
            plan.methods[0].prompts,
            selection.questions,
            suite.catalogue,
            progress=lambda: watcher.advance(None),
        )
    write_initial_file(path, initial)
    return initial


def _run_stream(
    context: _Context, method: Method, order: int, questions: Sequence[Question], out: Path
) -> StreamResult:
    if method.policy is not None:
        method = replace(method, policy=method.policy.for_order(order))
    folder = out / f"{method.name}-{order}"
    folder.mkdir(exist_ok=True)
    initial = [context.initial[question.id] for question in questions]
    usage = [one.usage for one in initial]
    ledger = Ledger(folder / "episodes.jsonl")
    done = len(ledger.records)
    cases = [
        case_of(question, position=position, initial_sql=one.sql)
        for position, (question, one) in enumerate(zip(questions, initial, strict=True))
    ]
    _check_ledger(ledger, cases, method, context.run)
    with _memory(context, method, folder / "memory", ledger) as memory:
        graph = build_repair_graph(
            context.model,
            memory,
            context.oracle,
            context.suite.catalogue,
            method,
            ledger,
            run=context.run,
            budget=context.plan.budget,
        )
        context.watcher.begin(f"{method.name}, order {order}", len(cases), done)
        begun, meter = time.perf_counter(), context.model.meter()
        for _ in run_stream(graph, cases[done:]):
            now, spent = time.perf_counter(), context.model.meter()
            _note_time(
                folder,
                ledger.records[-1],
                now - begun,
                spent.seconds - meter.seconds,
                spent.calls - meter.calls,
            )
            begun, meter = now, spent
            finished = len(ledger.records)
            context.watcher.advance(measure(ledger.records, usage[:finished]))
    return StreamResult(
        method=method.name,
        order=order,
        records=tuple(ledger.records),
        metrics=measure(ledger.records, usage),
        seconds=_seconds(folder),
    )


def _check_ledger(ledger: Ledger, cases: Sequence[Case], method: Method, run: str) -> None:
    """The ledger must be a beginning of this very stream."""
    expected = [(run, method.name, case.query_id, case.database_id, case.initial_sql) for case in cases]
    held = [
        (one.run, one.method, one.query_id, one.database_id, one.attempts[0]["sql"]) for one in ledger.records
    ]
    if held != expected[: len(held)]:
        raise DataError(
            f"{ledger.path} holds episodes of another stream than {method.name} of run {run}; "
            "restore the file, or choose another --out"
        )


@contextmanager
def _memory(
    context: _Context, method: Method, folder: Path, ledger: Ledger
) -> Iterator[EpisodicMemory | None]:
    """The stream's memory, brought up to its ledger; what is damaged or of another ledger is made again."""
    if method.policy is None or context.encoder is None:
        yield None
        return
    try:
        memory = _open_memory(context.encoder, method.policy, folder, ledger)
    except (JournalDamagedError, IdentityError, ForeignMemoryError) as error:
        _logger.warning("%s; %s is made again from the ledger", error, folder)
        shutil.rmtree(folder)
        memory = _open_memory(context.encoder, method.policy, folder, ledger)
    with memory:
        yield memory


def _open_memory(encoder: Encoder, policy: RetrievalPolicy, folder: Path, ledger: Ledger) -> EpisodicMemory:
    memory = EpisodicMemory.open(folder, encoder, memory_text=policy.memory_text)
    try:
        ledger.remember_in(memory)
    except BaseException:
        memory.close()
        raise
    return memory


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    with (out / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError(
                f"{out}: another process is running here; wait for it or use another --out"
            ) from error
        yield


def _note_time(folder: Path, record: EpisodeRecord, seconds: float, model_seconds: float, calls: int) -> None:
    row: dict[str, Any] = {
        "position": record.position,
        "query_id": record.query_id,
        "seconds": round(seconds, 3),
        "model_seconds": round(model_seconds, 3),
        "model_calls": calls,
    }
    append_line(folder / "timings.jsonl", json.dumps(row, sort_keys=True))


def _seconds(folder: Path) -> float:
    path = folder / "timings.jsonl"
    total = 0.0
    for line in path.read_bytes().splitlines() if path.exists() else []:
        try:
            total += float(json.loads(line)["seconds"])
        except (ValueError, KeyError, TypeError):
            continue
    return total
