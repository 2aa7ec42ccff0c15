"""``merit score``: score a predictions file as the official evaluators would, and strictly."""

import argparse
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from merit_sql.domain.errors import DataError

if TYPE_CHECKING:
    from rich.table import Table

    from merit_sql.eval.score import Group, Scored

_LEVELS = ("easy", "simple", "medium", "moderate", "hard", "challenging", "extra")
_TIMED = ("ves", "r-ves")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser(
        "score",
        help="score a file of predictions as the official evaluators would, and strictly",
        description="Scores one SQL a line (a tab and more may follow it), or BIRD's prediction JSON. The "
        "file must hold a prediction for every question of dev.json; --databases chooses among them then.",
    )
    parser.add_argument("--suite", required=True, choices=("spider", "bird"))
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder with spider/ and bird/")
    parser.add_argument("--predictions", type=Path, required=True, metavar="FILE")
    parser.add_argument(
        "--distinct",
        choices=("keep", "strip"),
        default="keep",
        help="Spider's official verdict: mind DISTINCT",
    )
    parser.add_argument(
        "--metric",
        choices=("ex", "soft-f1", *_TIMED),
        default="ex",
        help="BIRD's official verdict; ex for Spider",
    )
    parser.add_argument("--databases", help="only questions on these databases, e.g. pets_1,flight_2")
    parser.add_argument(
        "--timeout",
        type=positive_seconds,
        metavar="SECONDS",
        help="60 a query for Spider, 30 for prediction and reference together for BIRD",
    )
    parser.add_argument(
        "--jobs",
        type=_count,
        metavar="N",
        help="queries at a time (default: one a core; 1 for ves and r-ves, which others would slow down)",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the verdicts there, a JSON a line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score, print the table and write the verdicts; raises `MeritError` before anything is written."""
    from merit_sql.eval.datasets import load_suite
    from merit_sql.eval.predictions import read_predictions
    from merit_sql.eval.score import score, select, write_verdicts

    _check(args)
    jobs = args.jobs or (1 if args.metric in _TIMED else os.cpu_count() or 1)
    suite = load_suite(
        args.suite,
        args.data,
        workers=jobs,
        distinct=args.distinct,
        metric=args.metric,
        timeout=args.timeout,
    )
    with suite.catalogue:
        predictions = read_predictions(args.predictions, [one.database_id for one in suite.questions])
        names = None if args.databases is None else [name.strip() for name in args.databases.split(",")]
        scored = score(suite, select(suite.questions, names), predictions, jobs=jobs)
    if args.output is not None:
        write_verdicts(args.output, scored)
    _print(_title(args), scored)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Turn away what could not be written or means nothing, before any query runs."""
    if args.suite == "spider" and args.metric != "ex":
        raise DataError(f"--metric {args.metric} is BIRD's: Spider is scored by ex alone")
    if args.suite == "bird" and args.distinct != "keep":
        raise DataError(f"--distinct {args.distinct} is Spider's: BIRD compares sets of rows")
    output: Path | None = args.output
    if output is None:
        return
    if not output.parent.is_dir():
        raise DataError(f"--output {output}: the folder {output.parent} does not exist; create it first")
    if output.is_dir():
        raise DataError(f"--output {output} is a folder; name a file")
    if output.exists() and not output.is_file():
        raise DataError(f"--output {output} is no ordinary file; name one")
    if output.exists() and args.predictions.exists() and output.samefile(args.predictions):
        raise DataError(f"--output {output} is the predictions file; name another")
    if not os.access(output.parent, os.W_OK):
        raise DataError(f"--output {output}: the folder {output.parent} cannot be written to")


def positive_seconds(text: str) -> float:
    """The value of a `--timeout` option: a positive, finite number of seconds."""
    seconds = float(text)
    if not (seconds > 0 and math.isfinite(seconds)):
        raise argparse.ArgumentTypeError(f"{text} is no positive number of seconds")
    return seconds


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return count


def _title(args: argparse.Namespace) -> str:
    what = {"ex": "execution accuracy", "soft-f1": "soft F1", "ves": "VES", "r-ves": "R-VES"}[args.metric]
    mode = {"keep": ", DISTINCT kept", "strip": ", DISTINCT stripped"}[args.distinct]
    return f"{args.predictions.name}: {what} x 100{mode if args.suite == 'spider' else ''}"


def _print(title: str, scored: "Sequence[Scored]") -> None:
    from rich.console import Console

    from merit_sql.eval.score import summarise, summarise_by, unscored

    console = Console(highlight=False, markup=False, emoji=False)
    console.print(title)
    by_level = summarise_by(lambda question: question.difficulty, scored)
    by_level.sort(key=lambda group: _LEVELS.index(group.name) if group.name in _LEVELS else len(_LEVELS))
    by_database = summarise_by(lambda question: question.database_id, scored)
    by_database.sort(key=lambda group: group.name)
    console.print(_table([summarise("total", scored)], by_level, by_database))
    for reason, databases in unscored(scored).items():
        counts = ", ".join(f"{name} {count}" for name, count in sorted(databases.items()))
        console.print(f"unscored: {databases.total()} ({reason}): {counts}")


def _table(*blocks: "Iterable[Group]") -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for header in ("questions", "unscored", "official", "strict"):
        table.add_column(header, justify="right")
    for block in blocks:
        for group in block:
            counts = (str(group.questions), str(group.unscored) if group.unscored else "")
            table.add_row(group.name, *counts, _hundredfold(group.official), _hundredfold(group.strict))
        table.add_section()
    return table


def _hundredfold(mean: float | None) -> str:
    return "-" if mean is None else f"{100 * mean:.2f}"
