"""``merit demo``: the main job on the bundled suite with the embedded model, and what came of it."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from merit_sql.app import bench

if TYPE_CHECKING:
    from merit_sql.domain.episode import EpisodeRecord
    from merit_sql.eval.bench import RunResult

OUT = Path("runs/demo")
PROTOCOL = "demo"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser(
        "demo",
        help="fetch the embedded model and repair a slice of the bundled suite with it",
        description="Runs the protocol demo, questions of the suite mini on which repairs are seen, and "
        "writes the report.",
    )
    parser.add_argument("--out", type=Path, default=OUT, help="the run's folder")
    parser.add_argument("--replies", type=Path, help="recorded replies to answer from, as merit bench has it")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Fetch what is missing, run, print the table and the repairs, write the report."""
    from merit_sql.app.report import write_page
    from merit_sql.app.tables import console

    parser = argparse.ArgumentParser()
    bench.add_parser(parser.add_subparsers())
    options = parser.parse_args(["bench", "--protocol", PROTOCOL])
    options.out, options.replies = args.out, args.replies
    screen = console()
    screen.print(
        f"Repairing hand-picked questions of the bundled suite; the run is kept in {args.out}.",
        highlight=False,
        soft_wrap=True,
    )
    result = bench.bench(options, screen)
    bench.print_result(result, screen)
    for line in story(result):
        screen.print(line, highlight=False, markup=False, soft_wrap=True)
    page = write_page(args.out)
    screen.print(
        f"\nThe tables, charts and every episode, as one page for a browser: {page}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    return 0


def story(result: "RunResult") -> Iterator[str]:
    """Each repair of each stream: the first query, the last, and the memories that its prompt showed."""
    for stream in result.streams:
        repaired = [one for one in stream.records if len(one.attempts) > 1 and one.confirmed_by]
        informed = sum(bool(one.memory_ids) for one in repaired)
        yield ""
        yield f"{stream.method}: {len(repaired)} repaired, {informed} with memories in the last prompt"
        for record in repaired:
            yield from _repair(record)


def _repair(record: "EpisodeRecord") -> Iterator[str]:
    first, last = record.attempts[0], record.attempts[-1]
    shown = ", ".join(one[:8] for one in record.memory_ids) or "none"
    yield f"  question {record.query_id} on {record.database_id}, {last['step']} revisions, memories: {shown}"
    yield f"    - {_line(first['sql'])}  ({first['status']}{_error(first['error'])})"
    yield f"    + {_line(last['sql'])}"


def _line(sql: str) -> str:
    return " ".join(sql.split())


def _error(error: str | None) -> str:
    return f": {error}" if error else ""
