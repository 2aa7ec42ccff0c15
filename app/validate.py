"""``merit validate-classifier``: how far people agree with the failure classifier."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from merit_sql.domain.errors import DataError

if TYPE_CHECKING:
    from rich.table import Table

    from merit_sql.eval.validation import Agreement, Kappa, Validation

_PROTOCOL = range(150, 201)
"""Rows that the published validation labelled of each dataset."""

_WIDTH = 140
"""Columns where there is no terminal: the seven types fit beside one another."""

_SCORE = """\
Compares the labels with the classifier. A row's label is annotator_1's, or annotator_2's where the first
cell is empty; the classifier's type is worked out again from the row's status and error. Labels are the
classifier's own seven types: Result Mismatch, Schema Linking, Aggregation, Filter/Value, Execution, Syntax,
Unknown.

  accuracy   share of the labelled rows whose type is the label
  macro-F1   mean of F1 over the types that some label or prediction names
  coverage   share of the failures that the classifier did not call Unknown
  labelled   share of the sheet's rows that have a label
  kappa      Cohen's, over the rows that both annotators labelled

The plain column counts every labelled row once. In the weighted one a row stands for N/n failures of its
predicted type: N are in the run, n of them labelled. Its coverage is that of all the run's failures.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command, its two steps and their options."""
    parser = subparsers.add_parser(
        "validate-classifier",
        help="draw failures for people to label, and score the classifier by their labels",
        description="First sample, then let one or two people fill in the sheet, then score.",
    )
    steps = parser.add_subparsers(required=True, metavar="STEP")
    sample = steps.add_parser(
        "sample",
        help="draw initial failures of a run into a sheet to label",
        description="Writes a CSV of initial failures of a run, one a question, stratified by the type that "
        "the classifier gave them; the sheet does not show that type. The first 50 rows say yes under "
        "'both': two annotators label them, each without seeing the other's. Beside the sheet a file "
        "….key.json keeps the types and how often each occurs in the run: keep it from the annotators.",
    )
    sample.add_argument("run_folder", type=Path, metavar="RUN", help="folder of a run of merit bench")
    sample.add_argument(
        "--size", type=_count, default=150, metavar="N", help="rows; the paper took 150 to 200 (default: 150)"
    )
    sample.add_argument("--seed", type=int, default=0, metavar="N", help="of the draw (default: 0)")
    sample.add_argument(
        "--output", type=Path, required=True, metavar="FILE", help="the sheet, a new CSV file"
    )
    sample.set_defaults(run=run_sample)
    score = steps.add_parser(
        "score",
        help="score the classifier by a labelled sheet",
        description=_SCORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    score.add_argument("sheet", type=Path, metavar="LABELS", help="the sheet, filled in")
    score.add_argument(
        "--population",
        type=Path,
        metavar="FILE",
        help='what to weight by: a ….key.json, or {"population": {type: count}} (default: the sheet\'s own '
        "key where it lies beside it)",
    )
    score.set_defaults(run=run_score)


def run_sample(args: argparse.Namespace) -> int:
    """Draw, write the sheet and its key, and say what was drawn; raises `MeritError` before writing."""
    from merit_sql.eval.runs import load_run
    from merit_sql.eval.sheets import key_path, write_sheet
    from merit_sql.eval.validation import LABELLED_TWICE, draw, initial_failures

    run = load_run(args.run_folder)
    failures = initial_failures(run)
    if not failures:
        raise DataError(f"{args.run_folder}: no initial prediction failed; there is nothing to label")
    sample = draw(failures, args.size, args.seed)
    write_sheet(args.output, sample, failures, run=run.run, seed=args.seed)
    lines = [
        f"{len(sample)} of {len(failures)} initial failures of run {run.run} written to {args.output}",
        f"the first {min(LABELLED_TWICE, len(sample))} rows are for both annotators",
        f"keep {key_path(args.output)} from the annotators; score needs it",
    ]
    if len(failures) < args.size:
        lines.append(f"{args.size} were asked for: the run has fewer, and all of them were taken")
    if len(sample) not in _PROTOCOL:
        lines.append(f"the published validation labelled {_PROTOCOL[0]} to {_PROTOCOL[-1]} of each dataset")
    judged = len({record.query_id for stream in run.streams for record in stream.records})
    if judged < len(run.questions):
        lines.append(
            f"the run is not finished: {judged} of its {len(run.questions)} questions were judged so far"
        )
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def run_score(args: argparse.Namespace) -> int:
    """Read the labels, score and print; raises `MeritError` for a sheet that does not hold what it must."""
    from merit_sql.eval.sheets import key_path, read_key, read_sheet
    from merit_sql.eval.validation import validate

    beside = key_path(args.sheet)
    named: Path | None = args.population or (beside if beside.exists() else None)
    key = None if named is None else read_key(named)
    rows = read_sheet(args.sheet, key)
    drawn = len(rows) if key is None or key.drawn is None else len(key.drawn)
    _print(validate(rows, drawn=drawn, population=None if key is None else key.population))
    return 0


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return count


def _print(result: "Validation") -> None:
    from rich.console import Console

    width = None if sys.stdout.isatty() else _WIDTH
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True, width=width)
    console.print(
        f"labelled: {result.labelled} of {result.drawn} ({100 * result.labelled / result.drawn:.2f} %)"
    )
    console.print(_figures(result.plain, result.weighted))
    if result.weighted is None:
        console.print("no weighted figures: no population of failure types (see --population)")
    if result.unlabelled_types:
        console.print(
            "not in the weighted accuracy and macro-F1, since no row of the type has a label: "
            + ", ".join(result.unlabelled_types)
        )
    console.print(_kappa(result.kappa))
    console.print("\nrows: label, columns: classifier")
    console.print(_confusion(result))


def _figures(plain: "Agreement", weighted: "Agreement | None") -> "Table":
    table = _table("", "plain", "weighted")
    for name, field, scale, digits in (
        ("accuracy %", "accuracy", 100, 2),
        ("macro-F1", "macro_f1", 1, 3),
        ("coverage %", "coverage", 100, 2),
    ):
        values = (None if one is None else scale * getattr(one, field) for one in (plain, weighted))
        table.add_row(name, *("–" if value is None else f"{value:.{digits}f}" for value in values))
    return table


def _kappa(kappa: "Kappa") -> str:
    if not kappa.rows:
        return "Cohen's kappa: no row was labelled by both annotators"
    value = "undefined (both gave one type alone)" if kappa.value is None else f"{kappa.value:.3f}"
    return f"Cohen's kappa: {value}, both labelled {kappa.rows} rows and agreed on {kappa.agreed}"


def _confusion(result: "Validation") -> "Table":
    from merit_sql.domain.failure import FailureKind

    used = {kind for pair in result.confusion for kind in pair}
    kinds = [kind for kind in FailureKind if kind in used]
    table = _table("", *kinds)
    for label in kinds:
        table.add_row(label, *(str(result.confusion.get((label, predicted), 0)) for predicted in kinds))
    return table


def _table(first: str, *headers: str) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    for header in headers:
        table.add_column(header, justify="right", overflow="fold")
    return table
