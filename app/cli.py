"""The ``merit`` command line: one subcommand a module, each imported only when it runs."""

import argparse
import sys
from collections.abc import Sequence

from merit_sql.app import score
from merit_sql.domain.errors import MeritError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is 0, 1 or, for a `MeritError` and wrong usage, 2."""
    parser = argparse.ArgumentParser(
        prog="merit", description="Repairs failed SQL and remembers, behind a causal gate."
    )
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    score.add_parser(subparsers)
    args = parser.parse_args(argv)
    try:
        status: int = args.run(args)
    except MeritError as error:
        sys.stderr.write(f"merit: {error}\n")
        return 2
    return status
