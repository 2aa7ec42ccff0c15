"""Files that are what their hash says: verified once, installed atomically, then known by their stamp."""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from merit_sql.domain.errors import ModelError
from merit_sql.models.registry import WeightFile, Weights

_STAMPS = ".verified.json"


class WrongHashError(ModelError):
    """A file was not what its hash says, and was deleted."""


def present(weights: Weights, folder: Path) -> bool:
    """Whether all files lie in `folder` as they were when their hashes were verified; nothing is read."""
    stamps = _read_stamps(folder)
    return all(_known(folder, file, stamps) for file in weights.files)


def verify(folder: Path, file: WeightFile) -> bool:
    """Whether a file that lies in `folder` is the right one; read only if it changed since it was verified.

    A wrong file is deleted with a `WrongHashError`.
    """
    path = folder / file.path
    if not path.exists():
        return False
    if not _known(folder, file, _read_stamps(folder)):
        check(path, file)
        _keep_stamp(folder, file)
    return True


def install(staged: Path, folder: Path, file: WeightFile) -> None:
    """Verify a staged file and rename it into its place; a wrong one is deleted with a `WrongHashError`."""
    check(staged, file)
    with staged.open("rb") as handle:
        os.fsync(handle.fileno())
    target = folder / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    staged.replace(target)
    _keep_stamp(folder, file)


def check(path: Path, file: WeightFile) -> None:
    """Compare a file with its hash; a wrong one is deleted with a `WrongHashError` that gives both."""
    with path.open("rb") as handle:
        actual = hashlib.file_digest(handle, "sha256").hexdigest()
    if actual != file.sha256:
        size = path.stat().st_size
        path.unlink()
        raise WrongHashError(
            f"{path} is not {Path(file.path).name}: its sha256 is {actual} ({size:,} bytes), expected "
            f"{file.sha256} ({file.size:,} bytes); it was deleted"
        )


@contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file at `path` against other processes and threads; `waiting` is called if one has it."""
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _known(folder: Path, file: WeightFile, stamps: dict[str, Any]) -> bool:
    now = _stamp(folder / file.path, file)
    return now is not None and now == stamps.get(file.path)


def _stamp(path: Path, file: WeightFile) -> dict[str, Any] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return {"sha256": file.sha256, "size": found.st_size, "mtime_ns": found.st_mtime_ns}


def _read_stamps(folder: Path) -> dict[str, Any]:
    try:
        stamps = json.loads((folder / _STAMPS).read_text(encoding="ascii"))
    except (OSError, ValueError):
        # Stamps only spare a second reading; without them the file is read and its hash decides.
        return {}
    return stamps if isinstance(stamps, dict) else {}


def _keep_stamp(folder: Path, file: WeightFile) -> None:
    stamps = {**_read_stamps(folder), file.path: _stamp(folder / file.path, file)}
    fresh = folder / f"{_STAMPS}.new"
    fresh.write_text(json.dumps(stamps, sort_keys=True), encoding="ascii")
    fresh.replace(folder / _STAMPS)
