"""The benchmark runner: streams of episodes over a suite, on disk, resumable, repeatable."""

import fcntl
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merit_sql.domain.encoder import Encoder
from merit_sql.domain.errors import DataError, MeritError, StoppedError
from merit_sql.domain.status import Regime
from merit_sql.eval.datasets import Question, Suite
from merit_sql.eval.identity import identity_of
from merit_sql.eval.initial import (
    InitialPrediction,
    generate_initial,
    given_initial,
    read_initial_file,
    write_initial_file,
)
from merit_sql.eval.manifest import claim, run_id
from merit_sql.eval.oracle import BenchmarkOracle, VerdictRecord
from merit_sql.eval.runs import write_questions
from merit_sql.eval.streams import Quiet, StreamContext, StreamResult, Watcher, run_one
from merit_sql.graph.method import Method
from merit_sql.models.record import RecordedChatModel
from merit_sql.prompts.rendering import TokenBudget, render_schema

QUIET = Quiet()


class BusyError(MeritError):
    """Another process is at work in the same run folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a benchmark run is asked to do.

    `databases` and `questions` (ids) are None for all of them, `limit` for every scorable question.
    `predictions` are the initial predictions aligned to the whole dataset, or None where the model writes
    them. `budget` is K.
    """

    methods: tuple[Method, ...]
    orders: tuple[int, ...] = (0,)
    databases: tuple[str, ...] | None = None
    questions: tuple[int, ...] | None = None
    limit: int | None = None
    budget: int = 7
    predictions: tuple[str, ...] | None = None
    regime: Regime = Regime.DENOTATION_CONFIRMED
    tokens: TokenBudget = field(default_factory=TokenBudget)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The questions of a run in dataset order, and those passed over because nothing can score them."""

    questions: tuple[Question, ...]
    unscored: tuple[Question, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """All streams of a run."""

    run: str
    selection: Selection
    streams: tuple[StreamResult, ...]
    initial_given: bool


def select(
    suite: Suite,
    databases: Sequence[str] | None,
    limit: int | None,
    questions: Sequence[int] | None = None,
) -> Selection:
    """Choose in dataset order: the databases and ids named, then what can be scored, then the first `limit`.

    Raises `DataError` for a database that no question is about, an id that no question has, and where
    nothing is left.
    """
    known = {question.database_id for question in suite.questions}
    unknown = sorted(set(databases or ()) - known)
    if unknown:
        raise DataError(
            f"the suite {suite.name} has no questions on {', '.join(unknown)}; "
            f"it has: {', '.join(sorted(known))}"
        )
    absent = sorted(set(questions or ()) - {question.id for question in suite.questions})
    if absent:
        raise DataError(
            f"the suite {suite.name} has no question {', '.join(map(str, absent))}; "
            f"its ids run from 0 to {len(suite.questions) - 1}"
        )
    chosen: list[Question] = []
    unscored: list[Question] = []
    for question in suite.questions:
        if databases is not None and question.database_id not in databases:
            continue
        if questions is not None and question.id not in questions:
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
    watcher: Watcher = QUIET,
    stop: Callable[[], bool] = lambda: False,
    protocol: Mapping[str, Any] | None = None,
) -> RunResult:
    """Run, or go on with, every stream of `plan` in the folder `out`.

    The encoder is asked for once, and only if some method remembers. `stop` is asked after every commit;
    `protocol` is kept in the manifest for a reader. Raises `StoppedError` once `stop` says so,
    `IdentityError` where `out` holds a run of other settings, `BusyError` where another process works in it.
    """
    selection = select(suite, plan.databases, plan.limit, plan.questions)
    shared_encoder = encoder() if any(method.remembers for method in plan.methods) else None
    identity = identity_of(plan, suite, selection.questions, model, shared_encoder)
    out.mkdir(parents=True, exist_ok=True)
    with _alone(out):
        claim(out, identity, protocol)
        write_questions(
            out,
            selection.questions,
            {
                name: render_schema(suite.catalogue[name].schema)
                for name in sorted({question.database_id for question in selection.questions})
            },
        )
        initial = _initial(
            plan=plan, suite=suite, selection=selection, model=model, out=out, watcher=watcher, stop=stop
        )
        context = StreamContext(
            suite=suite,
            model=model,
            encoder=shared_encoder,
            oracle=BenchmarkOracle(
                evaluator=suite.evaluator,
                record=verdicts,
                scope=json.dumps(identity["scoring"], sort_keys=True),
                regime=plan.regime,
            ),
            run=run_id(identity),
            budget=plan.budget,
            regime=plan.regime,
            tokens=plan.tokens,
            initial={one.question_id: one for one in initial},
            watcher=watcher,
            stop=stop,
        )
        streams = [
            run_one(context, method, order, stream_order(selection.questions, order), out)
            for method in plan.methods
            for order in plan.orders
        ]
    return RunResult(
        run=context.run,
        selection=selection,
        streams=tuple(streams),
        initial_given=plan.predictions is not None,
    )


def _initial(
    *,
    plan: Plan,
    suite: Suite,
    selection: Selection,
    model: RecordedChatModel,
    out: Path,
    watcher: Watcher,
    stop: Callable[[], bool],
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
            tokens=plan.tokens,
            progress=lambda: _one_more(watcher, stop),
        )
    write_initial_file(path, initial)
    return initial


def _one_more(watcher: Watcher, stop: Callable[[], bool]) -> None:
    watcher.advance(None)
    if stop():
        raise StoppedError("stopped while initial predictions were written; they are recorded")


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
