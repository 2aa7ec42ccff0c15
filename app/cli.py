"""The ``merit`` command line: one subcommand a module, each imported only when it runs."""

import argparse
import errno
import sys
from collections.abc import Sequence

from merit_sql.app import bench, demo, methods, model, report, score, validate
from merit_sql.domain.errors import MeritError, StoppedError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; exit status 0, 2 for a `MeritError` or wrong usage, 130 when stopped."""
    parser = argparse.ArgumentParser(
        prog="merit", description="Repairs failed SQL and remembers, behind a causal gate."
    )
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (demo, bench, report, score, methods, model, validate):
        command.add_parser(subparsers)
    args = parser.parse_args(argv)
    try:
        status: int = args.run(args)
    except StoppedError as stopped:
        sys.stderr.write(f"merit: {stopped}\n")
        return 130
    except MeritError as error:
        sys.stderr.write(f"merit: {error}\n")
        return 2
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        sys.stderr.write(
            f"merit: the disk is full ({error.filename or error.strerror}): make room, and the same command "
            "goes on\n"
        )
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("merit: stopped; the same command goes on where a run was left\n")
        return 130
    return status
