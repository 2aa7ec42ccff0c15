"""How a database file is opened so that neither it nor its folder changes."""

import contextlib
import functools
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

from merit_sql.databases.pool import WorkerPool
from merit_sql.databases.worker import Request
from merit_sql.domain.errors import DataError

MAGIC = b"SQLite format 3\0"
"""The first bytes of every SQLite database that is not empty."""

COMPANIONS = ("-wal", "-shm", "-journal")
"""What SQLite appends to a database's name for the files it keeps beside it."""

_WAL_VERSIONS = b"\x02\x02"
_COPY_TRIES = 5
_FILE_SECONDS = 600.0

Stamp = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A URI for a read-only connection, and a stamp that changes with the file."""

    uri: str
    stamp: Stamp


class Source:
    """One database file on disk.

    A plain file is opened ``mode=ro``. One in WAL mode would make SQLite create a ``-shm`` file beside it:
    without a live log it is opened as immutable, with one, or with the journal of a writer that died, a
    private copy is recovered and opened instead.

    This process never opens the file itself: closing it would drop the locks that a connection of the same
    process has on it.
    """

    def __init__(self, path: Path, pool: WorkerPool) -> None:
        """The file at `path`, which is looked at when it is first opened."""
        self.path = path
        self._pool = pool
        self._lock = threading.Lock()
        self._opening: Opening | None = None
        self._fingerprint: tuple[Stamp, str] = ((), "")
        self._copy: tempfile.TemporaryDirectory[str] | None = None

    def opening(self) -> Opening:
        """How to open the file as it is now.

        Raises `FileNotFoundError` when it is gone and `DataError` when it cannot be read.
        """
        stamp = self._look()
        opening = self._opening
        if opening is None or opening.stamp != stamp:
            with self._lock:
                opening = Opening(uri=self._uri(), stamp=stamp)
                self._opening = opening
        return opening

    def fingerprint(self) -> str:
        """sha256 (hex) of the file, followed by its write-ahead log where one is alive.

        Raises as `opening` does.
        """
        stamp = self._look()
        if self._fingerprint[0] != stamp:
            self._fingerprint = (stamp, self._ask("hash"))
        return self._fingerprint[1]

    @functools.cached_property
    def _files(self) -> tuple[Path, Path, Path]:
        """The database, its log and its journal: beside the file itself, not beside a link to it."""
        real = Path(os.path.realpath(self.path))
        return real, real.with_name(real.name + "-wal"), real.with_name(real.name + "-journal")

    def _look(self) -> Stamp:
        stamp: list[int] = []
        for path in self._files:
            try:
                seen = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                if not stamp:
                    raise
                stamp += (-1, -1, -1)
            else:
                stamp += (seen.st_ino, seen.st_size, seen.st_mtime_ns)
        return tuple(stamp)

    def _ask(self, operation: str) -> Any:  # noqa: ANN401 - what a worker answers depends on the operation
        request = Request(operation, str(self._files[0]), seconds=_FILE_SECONDS)
        frame = self._pool.call(request)[-1]
        if frame[0] == "failed":
            raise DataError(f"{self.path}: the database cannot be read: {frame[2]}")
        return frame[1]

    def _uri(self) -> str:
        real, log, _ = self._files
        head, log_head, journal_head = self._ask("heads")
        if log_head or journal_head[:1] not in {b"", b"\0"}:
            return _uri(self._recovered_copy(), immutable=True)
        return _uri(real, immutable=head[18:20] == _WAL_VERSIONS or log.exists())

    def _recovered_copy(self) -> Path:
        for _ in range(_COPY_TRIES):
            before = self._look()
            folder = tempfile.TemporaryDirectory(prefix="merit-sql-")
            copy = Path(folder.name) / "copy.sqlite"
            for original, suffix in zip(self._files, ("", "-wal", "-journal"), strict=True):
                if original.exists():
                    _copy_elsewhere(original, copy.with_name(copy.name + suffix))
            if self._look() == before:
                break
            folder.cleanup()
        else:
            raise DataError(
                f"{self.path}: the database is being written all the time: stop the writer, or copy the file"
            )
        if self._copy is not None:
            self._copy.cleanup()
        self._copy = folder
        weakref.finalize(self, folder.cleanup)
        try:
            with contextlib.closing(sqlite3.connect(copy)) as connection:
                connection.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.Error as error:
            raise DataError(f"{self.path}: its write-ahead log cannot be recovered: {error}") from error
        return copy


def _copy_elsewhere(original: Path, copy: Path) -> None:
    """Copy a file in a process of its own, for the locks' sake."""
    script = "import shutil, sys; shutil.copyfile(sys.argv[1], sys.argv[2])"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(original), str(copy)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise DataError(f"{original}: no private copy can be made: {reason}")


def is_database(path: Path) -> bool:
    """Whether the file begins as an SQLite database does."""
    with path.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def _uri(path: Path, *, immutable: bool) -> str:
    quoted = quote_from_bytes(os.fsencode(path))
    return f"file:{quoted}?mode=ro{'&immutable=1' if immutable else ''}"
