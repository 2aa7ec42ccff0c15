"""One stream of a run: its episodes in order, on disk, resumable at any of them."""

import logging
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from merit_sql.domain.encoder import Encoder
from merit_sql.domain.episode import Case, EpisodeRecord
from merit_sql.domain.errors import DataError, IdentityError, StoppedError
from merit_sql.domain.status import Regime
from merit_sql.eval.datasets import Question, Suite
from merit_sql.eval.initial import InitialPrediction, case_of
from merit_sql.eval.ledger import ForeignMemoryError, Ledger
from merit_sql.eval.metrics import Metrics, measure
from merit_sql.eval.oracle import BenchmarkOracle
from merit_sql.eval.timing import TimedEncoder, TimedMemory, TimedOracle
from merit_sql.eval.timings import Stopwatch, Timings, note_timings, read_timings
from merit_sql.graph.method import Method
from merit_sql.graph.repair import build_repair_graph
from merit_sql.graph.stream import run_stream
from merit_sql.models.record import RecordedChatModel
from merit_sql.prompts.rendering import TokenBudget
from merit_sql.stores.episodic import EpisodicMemory
from merit_sql.stores.journal import JournalDamagedError
from merit_sql.stores.ranking import RetrievalPolicy

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamResult:
    """One finished stream: its records in stream order, its metrics, and this machine's seconds for it."""

    method: str
    order: int
    records: tuple[EpisodeRecord, ...]
    metrics: Metrics
    timings: Timings


class Watcher(Protocol):
    """Who looks on while a run goes."""

    def begin(self, title: str, total: int, done: int) -> None:
        """A stage of `total` steps begins, `done` of which were finished by an earlier run."""
        ...

    def advance(self, metrics: Metrics | None) -> None:
        """One step more; `metrics` are those of the stream so far."""
        ...


class Quiet:
    """A `Watcher` that shows nothing."""

    def begin(self, title: str, total: int, done: int) -> None:
        """See `Watcher.begin`."""

    def advance(self, metrics: Metrics | None) -> None:
        """See `Watcher.advance`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamContext:
    """What the streams of one run share; `initial` by question id, `budget` is K."""

    suite: Suite
    model: RecordedChatModel
    encoder: Encoder | None
    oracle: BenchmarkOracle
    run: str
    budget: int
    regime: Regime
    tokens: TokenBudget
    initial: Mapping[int, InitialPrediction]
    watcher: Watcher
    stop: Callable[[], bool]


def run_one(
    context: StreamContext, method: Method, order: int, questions: Sequence[Question], out: Path
) -> StreamResult:
    """Run, or go on with, the stream of one method over `questions`, already in its order, below `out`."""
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
    watch = Stopwatch()
    with _memory(context, method, folder / "memory", ledger, watch) as memory:
        graph = build_repair_graph(
            context.model,
            None if memory is None else TimedMemory(memory, watch),
            TimedOracle(context.oracle, watch),
            context.suite.catalogue,
            method,
            ledger,
            run=context.run,
            regime=context.regime,
            budget=context.budget,
            tokens=context.tokens,
        )
        context.watcher.begin(f"{method.name}, order {order}", len(cases), done)
        clock = _Clock(context.model, watch)
        for _ in run_stream(graph, cases[done:]):
            note_timings(folder / "timings.jsonl", clock.episode(ledger.records[-1]))
            finished = len(ledger.records)
            context.watcher.advance(measure(ledger.records, usage[:finished]))
            if context.stop():
                raise StoppedError(
                    f"stopped after episode {finished} of {len(cases)} of {method.name}, order {order}, was "
                    "committed; the same command goes on from there"
                )
    return StreamResult(
        method=method.name,
        order=order,
        records=tuple(ledger.records),
        metrics=measure(ledger.records, usage),
        timings=read_timings(folder / "timings.jsonl"),
    )


class _Clock:
    """Reads what an episode took since the one before."""

    def __init__(self, model: RecordedChatModel, watch: Stopwatch) -> None:
        self._model, self._watch = model, watch
        self._begun, self._meter = time.perf_counter(), model.meter()
        watch.take()

    def episode(self, record: EpisodeRecord) -> dict[str, object]:
        now, meter, parts = time.perf_counter(), self._model.meter(), self._watch.take()
        row: dict[str, object] = {
            "position": record.position,
            "query_id": record.query_id,
            "seconds": now - self._begun,
            "model_seconds": meter.seconds - self._meter.seconds,
            "real_calls": meter.calls - self._meter.calls,
            **{f"{part}_seconds": seconds for part, seconds in parts.items()},
        }
        self._begun, self._meter = now, meter
        return row


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
    context: StreamContext, method: Method, folder: Path, ledger: Ledger, watch: Stopwatch
) -> Iterator[EpisodicMemory | None]:
    """The stream's memory, brought up to its ledger; what is damaged or of another ledger is made again."""
    if method.policy is None or context.encoder is None:
        yield None
        return
    encoder = TimedEncoder(context.encoder, watch)
    try:
        memory = _open_memory(encoder, method.policy, folder, ledger)
    except (JournalDamagedError, IdentityError, ForeignMemoryError) as error:
        _logger.warning("%s; %s is made again from the ledger", error, folder)
        shutil.rmtree(folder)
        memory = _open_memory(encoder, method.policy, folder, ledger)
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
