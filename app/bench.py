"""``merit bench``: run methods over a suite, print the table, keep the run on disk."""

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from merit_sql.app.score import positive_seconds
from merit_sql.domain.errors import DataError

if TYPE_CHECKING:
    from rich.console import Console

    from merit_sql.eval.bench import Plan, RunResult
    from merit_sql.eval.datasets import Suite
    from merit_sql.models.identity import ModelIdentity
    from merit_sql.models.replies import Replies

DEFAULT_MODEL = "embedded:qwen2.5-coder-1.5b"
DEFAULT_ENCODER = "embedded:all-minilm-l6-v2"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser(
        "bench",
        help="repair the failed SQL of a suite, method by method, and print what each achieves",
        description="Runs every method in every order over the chosen questions. The run lives in --out: "
        "the same command goes on where it stopped.",
    )
    parser.add_argument("--suite", required=True, choices=("mini", "spider", "bird"))
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder with spider/ and bird/")
    parser.add_argument("--databases", help="only questions on these databases, e.g. pets_1,flight_2")
    parser.add_argument("--limit", type=int, help="only the first N scorable questions")
    parser.add_argument("--method", required=True, help="methods, e.g. iterative,merit")
    parser.add_argument("--orders", default="0", help="stream orders (seeds), e.g. 0,1,2")
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--encoder", default=DEFAULT_ENCODER)
    parser.add_argument("--initial", default="generate", help="'generate', or a file of predictions")
    parser.add_argument("--budget", type=int, default=7, help="K, revisions an episode may spend")
    parser.add_argument(
        "--replies", type=Path, help="recorded replies to answer from before asking the model"
    )
    parser.add_argument(
        "--distinct", choices=("keep", "strip"), default="keep", help="Spider's DISTINCT mode"
    )
    parser.add_argument(
        "--timeout", type=positive_seconds, help="seconds a query may take (Spider 60, BIRD 30)"
    )
    parser.add_argument("--out", type=Path, required=True, help="the run's folder")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command and print its table; 0 when every stream is finished."""
    from merit_sql.app.tables import console

    screen = console()
    print_result(bench(args, screen), screen)
    return 0


def print_result(result: "RunResult", screen: "Console") -> None:
    """Print the table of a run and what must be known beside it."""
    from merit_sql.app.tables import notes, results_table

    screen.print(results_table(result))
    for note in notes(result):
        screen.print(note, highlight=False, markup=False)


def bench(args: argparse.Namespace, screen: "Console") -> "RunResult":
    """Resolve the names on the command line and run; raises `MeritError` for whatever is wrong with them."""
    from merit_sql.app.progress import ProgressWatcher
    from merit_sql.eval.bench import run_bench
    from merit_sql.eval.oracle import Verdicts
    from merit_sql.models.chat import get_chat_model
    from merit_sql.models.encoder import get_encoder
    from merit_sql.models.identity import identity
    from merit_sql.models.record import RecordedChatModel, ReplyRecord, open_record

    suite = _suite(args)
    with suite.catalogue:
        plan = _plan(args, suite)
        live = get_chat_model(args.model)
        earlier = [
            open_record(path) for path in (args.replies, replayed_file(args.model)) if path is not None
        ]
        _check_recorded(earlier, identity(live))
        _make_folder(args.out)
        with closing(ReplyRecord(args.out / "replies.sqlite")) as own, ProgressWatcher(screen) as watcher:
            return run_bench(
                plan=plan,
                suite=suite,
                model=RecordedChatModel(inner=live, records=[own, *earlier], identity=identity(live)),
                encoder=lambda: get_encoder(args.encoder),
                verdicts=Verdicts(own=own, earlier=earlier),
                out=args.out,
                watcher=watcher,
            )


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"--out {out}: no folder can be made there ({error.strerror})") from error


def replayed_file(model: str) -> Path | None:
    """The file of a model named ``replay:FILE``: its verdicts are used beside its replies."""
    kind, _, rest = model.partition(":")
    return Path(rest) if kind == "replay" else None


def _suite(args: argparse.Namespace) -> "Suite":
    from merit_sql.eval.datasets import load_suite
    from merit_sql.eval.suites.load import load_mini

    if args.suite == "mini":
        return load_mini(distinct=args.distinct, timeout=args.timeout)
    return load_suite(args.suite, args.data, distinct=args.distinct, timeout=args.timeout)


def _plan(args: argparse.Namespace, suite: "Suite") -> "Plan":
    from merit_sql.eval.bench import Plan
    from merit_sql.eval.predictions import read_predictions
    from merit_sql.graph.method import METHODS

    names = _listed(args.method)
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        raise DataError(f"--method {args.method!r}: unknown {unknown}; there are: {', '.join(METHODS)}")
    if args.limit is not None and args.limit < 1:
        raise DataError(f"--limit {args.limit}: give 1 or more, or leave it out for all questions")
    if args.budget < 0:
        raise DataError(f"--budget {args.budget}: give 0 or more revisions")
    predictions = None
    if args.initial != "generate":
        databases = [question.database_id for question in suite.questions]
        predictions = tuple(read_predictions(Path(args.initial), databases))
    return Plan(
        methods=tuple(METHODS[name] for name in names),
        orders=_orders(args.orders),
        databases=None if args.databases is None else tuple(_listed(args.databases)),
        limit=args.limit,
        budget=args.budget,
        predictions=predictions,
    )


def _listed(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _orders(text: str) -> tuple[int, ...]:
    try:
        orders = tuple(int(order) for order in _listed(text))
    except ValueError as error:
        raise DataError(f"--orders {text!r}: give whole numbers, e.g. 0,1,2") from error
    if not orders or min(orders) < 0:
        raise DataError(f"--orders {text!r}: give one or more numbers from 0 up")
    return orders


def _check_recorded(records: "Sequence[Replies]", model: "ModelIdentity") -> None:
    for record in records:
        known = record.identities()
        if model not in known:
            named = "; ".join(one.describe() for one in known) or "none"
            raise DataError(f"{record.name} holds no replies of {model.describe()}; it has those of: {named}")
