"""``merit report``: the tables, charts and episodes of runs, as one page or as tables alone."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from merit_sql.domain.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merit_sql.eval.report.figures import Part

REFERENCE = "merit"
"""The method that others are compared with where nothing else is asked for."""

PAGE = "report.html"
"""The page's file in the folder of the first run."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser(
        "report",
        help="show runs as one page with tables, charts and every episode, or as tables",
        description="Runs that differ in methods and orders alone are one; others are refused, or shown side "
        "by side with --labelled. The page needs no network and holds all it shows.",
    )
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="folder of a run (merit bench --out)"
    )
    parser.add_argument("--format", choices=("html", "markdown", "csv", "latex"), default="html")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="where to write (default: report.html in the first RUN; tables go to standard output)",
    )
    parser.add_argument(
        "--reference",
        default=REFERENCE,
        metavar="METHOD",
        help=f"the method that others are compared with (default: {REFERENCE}, else the most accurate)",
    )
    parser.add_argument(
        "--labelled", action="store_true", help="show runs of other settings side by side, never pooled"
    )
    parser.add_argument("--against", choices=("paper",), help="set the authors' published figures beside")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read the runs and write the report; raises `MeritError` where they are damaged or do not mix."""
    parts = _parts(args.runs, args.reference, labelled=args.labelled)
    if args.reference != REFERENCE and not any(part.reference.method == args.reference for part in parts):
        there = ", ".join(dict.fromkeys(arm.method for part in parts for arm in part.arms))
        raise DataError(f"--reference {args.reference}: these runs have no such method; they have {there}")
    content = _content(args, parts)
    output: Path | None = args.output
    if output is None and args.format == "html":
        output = args.runs[0] / PAGE
    if output is None:
        sys.stdout.buffer.write(content)
    else:
        _write(output, content, args.runs)
        sys.stderr.write(f"{output}\n")
    return 0


def write_page(folder: Path) -> Path:
    """Write the page of the run in `folder`, as ``merit report`` does, and return its file."""
    from merit_sql.eval.report.page import page

    output = folder / PAGE
    _write(output, page(_parts([folder], REFERENCE), against=False), [folder])
    return output


def _parts(folders: "Sequence[Path]", reference: str, *, labelled: bool = False) -> "list[Part]":
    from merit_sql.eval.report.figures import part_of
    from merit_sql.eval.report.reading import open_run
    from merit_sql.eval.report.sources import combine

    sources = combine([open_run(folder) for folder in folders], labelled=labelled)
    return [part_of(source, reference) for source in sources if source.streams]


def _content(args: argparse.Namespace, parts: "Sequence[Part]") -> bytes:
    if args.format == "html":
        from merit_sql.eval.report.page import page

        return page(parts, against=args.against == "paper")
    from merit_sql.eval.report.against import against_paper
    from merit_sql.eval.report.sections import all_tables
    from merit_sql.eval.report.tables import WRITERS

    tables = all_tables(parts) + (against_paper(parts) if args.against == "paper" else [])
    return WRITERS[args.format](tables).encode("utf-8")


def _write(output: Path, content: bytes, runs: "Sequence[Path]") -> None:
    if output.is_dir():
        raise DataError(f"--output {output} is a folder; name a file")
    if output.suffix in {".json", ".jsonl", ".sqlite"} and _is_within(output, runs):
        raise DataError(f"--output {output} would overwrite what a run is made of; name another file")
    temporary = output.with_name(f"{output.name}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(output)
    except OSError as error:
        raise DataError(
            f"--output {output}: cannot be written ({error.strerror}); name another file"
        ) from error


def _is_within(output: Path, runs: "Sequence[Path]") -> bool:
    return any(output.resolve().is_relative_to(run.resolve()) for run in runs)
