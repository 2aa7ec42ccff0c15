"""How a database file is opened so that neither it nor its folder changes."""

import contextlib
import functools
import hashlib
import os
import shutil
import sqlite3
import tempfile
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_from_bytes

from merit_sql.domain.errors import DataError

MAGIC = b"SQLite format 3\0"
"""The first bytes of every SQLite database that is not empty."""

COMPANIONS = ("-wal", "-shm", "-journal")
"""What SQLite appends to a database's name for the files it keeps beside it."""

_WAL_VERSIONS = b"\x02\x02"
_COPY_TRIES = 5

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
    """

    def __init__(self, path: Path) -> None:
        """The file at `path`, which is looked at when it is first opened."""
        self.path = path
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
                try:
                    opening = Opening(uri=self._uri(), stamp=stamp)
                except PermissionError as error:
                    raise DataError(f"{self.path}: the database may not be read: {error.strerror}") from error
                self._opening = opening
        return opening

    def fingerprint(self) -> str:
        """sha256 (hex) of the file, followed by its write-ahead log where one is alive."""
        stamp = self._look()
        if self._fingerprint[0] != stamp:
            digest = hashlib.sha256()
            for path in self._files[:2]:
                if path.exists():
                    with path.open("rb") as stream:
                        while block := stream.read(1 << 20):
                            digest.update(block)
            self._fingerprint = (stamp, digest.hexdigest())
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

    def _uri(self) -> str:
        real, log, journal = self._files
        if _first_bytes(log, 1) or _first_bytes(journal, 1) not in {b"", b"\0"}:
            return _uri(self._recovered_copy(), immutable=True)
        in_wal_mode = _first_bytes(real, 20)[18:20] == _WAL_VERSIONS
        return _uri(real, immutable=in_wal_mode or log.exists())

    def _recovered_copy(self) -> Path:
        for _ in range(_COPY_TRIES):
            before = self._look()
            folder = tempfile.TemporaryDirectory(prefix="merit-sql-")
            copy = Path(folder.name) / "copy.sqlite"
            for original, suffix in zip(self._files, ("", "-wal", "-journal"), strict=True):
                if original.exists():
                    shutil.copyfile(original, copy.with_name(copy.name + suffix))
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


def is_database(path: Path) -> bool:
    """Whether the file begins as an SQLite database does."""
    return _first_bytes(path, len(MAGIC)) == MAGIC


def _first_bytes(path: Path, count: int) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(count)
    except FileNotFoundError:
        return b""


def _uri(path: Path, *, immutable: bool) -> str:
    quoted = quote_from_bytes(os.fsencode(path))
    return f"file:{quoted}?mode=ro{'&immutable=1' if immutable else ''}"
