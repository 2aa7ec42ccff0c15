"""Whether a Chroma directory may be handed to Chroma at all, whose core can abort the process over damage.

A directory that was closed in order is sealed: a file beside it holds the hash of its files. One that a kill
left open has no seal, and is held to SQLite's own integrity check.
"""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

DATABASE = "chroma.sqlite3"


def seal(folder: Path) -> None:
    """Note the state of a directory that was just closed."""
    _seal_of(folder).write_text(_hash(folder), "ascii")


def break_seal(folder: Path) -> None:
    """Forget the noted state, since the directory is about to change."""
    _seal_of(folder).unlink(missing_ok=True)


def unsoundness(folder: Path) -> str | None:
    """What is wrong with a directory; None where it may be opened, or is not there yet."""
    if not folder.exists():
        return None
    if not folder.is_dir():
        return "it is no directory"
    if _seal_of(folder).exists():
        sealed = _seal_of(folder).read_bytes() == _hash(folder).encode("ascii")
        return None if sealed else "its files are not those that were there when it was closed"
    return _database_fault(folder / DATABASE)


def _database_fault(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(path)) as connection:
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return f"its database cannot be read: {error}"
    return None if verdict == "ok" else f"its database is damaged: {verdict}"


def _seal_of(folder: Path) -> Path:
    return folder.with_name(folder.name + ".seal")


def _hash(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(folder).as_posix()}\n{content}\n".encode())
    return total.hexdigest()
