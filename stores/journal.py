"""The append-only journal of observations: the truth that everything else here is derived from.

On disk it is a JSONL file of mode 0600. Its first line names the encoder and the memory text that the
store was made with. Every further line is ``{"check": …, "observation": …}`` in canonical JSON, where
`check` is the sha256 over all observations up to and including this one, so that a line that was changed,
lost or moved is found.
"""

import fcntl
import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from merit_sql.domain.errors import DataError, IdentityError, MeritError
from merit_sql.domain.memory import Observation
from merit_sql.stores.gate import CommitKey
from merit_sql.stores.records import canonical, check_observation, observation_from_dict, observation_to_dict

__all__ = ["Journal", "JournalDamagedError", "StoreBusyError", "StoreError", "StoreIdentity"]

JOURNAL_NAME = "journal.jsonl"
LOCK_NAME = ".lock"

_logger = logging.getLogger(__name__)


class StoreError(MeritError):
    """The memory could not be written, or is not in a state to be used."""


class JournalDamagedError(DataError):
    """A line of a journal is not what was written there."""


class StoreBusyError(StoreError):
    """Another process, or another object of this one, has the memory open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreIdentity:
    """What a store's vectors were made with; a store is opened with the same or not at all."""

    encoder: str
    revision: str
    dimension: int
    memory_text: str


class Journal:
    """Observations in the order of their commits, each commit key once.

    `observations` and `by_key` are to be read, not changed. Not safe for use by several threads at once.
    """

    def __init__(self) -> None:
        """An empty journal that lives in memory only; `open` gives one with a file."""
        self.observations: list[Observation] = []
        self.by_key: dict[CommitKey, Observation] = {}
        self.checks: list[str] = []
        self._chain = hashlib.sha256()
        self._file: _JournalFile | None = None

    @classmethod
    def open(cls, folder: Path, identity: StoreIdentity) -> "Journal":
        """The journal in `folder`, which is created where it is missing, for this process alone.

        A last line that a kill tore is cut off. Raises `StoreBusyError` where it is open already,
        `IdentityError` where it was made under another identity, `JournalDamagedError` at a damaged line.
        """
        journal = cls()
        file = _JournalFile(folder)
        try:
            lines = file.lines()
            if not lines:
                file.append(_header_line(identity))
            else:
                _check_identity(file.path, lines[0], identity)
            for number, line in enumerate(lines[1:], start=2):
                journal._read(file.path, number, line)
        except BaseException:
            file.close()
            raise
        journal._file = file
        return journal

    def append(self, observations: Sequence[Observation]) -> range:
        """Keep those whose commit key is new, durably and in order; the rows they got.

        Raises `DataError` at an observation that contradicts itself, `StoreError` where the file cannot
        be written; nothing is kept then.
        """
        new: dict[CommitKey, Observation] = {}
        for observation in observations:
            check_observation(observation)
            key = observation.provenance.commit_key
            if key not in self.by_key:
                new.setdefault(key, observation)
        first = len(self.observations)
        chain = self._chain.copy()
        checks: list[str] = []
        lines: list[bytes] = []
        for observation in new.values():
            data = observation_to_dict(observation)
            chain.update(canonical(data) + b"\n")
            checks.append(chain.hexdigest())
            lines.append(canonical({"check": checks[-1], "observation": data}) + b"\n")
        if lines and self._file is not None:
            self._file.append(b"".join(lines))
        self.observations.extend(new.values())
        self.by_key.update(new)
        self.checks.extend(checks)
        self._chain = chain
        return range(first, len(self.observations))

    def digest(self) -> str:
        """sha256 (hex) over the canonical observations, one a line, in order."""
        return self._chain.hexdigest()

    def close(self) -> None:
        """Let go of the file and its lock; a journal in memory has neither."""
        if self._file is not None:
            self._file.close()

    def _read(self, path: Path, number: int, line: bytes) -> None:
        try:
            data = json.loads(line)
            observation = observation_from_dict(data["observation"])
            stated = data["check"]
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged(path, number, str(error)) from error
        chain = self._chain.copy()
        chain.update(canonical(observation_to_dict(observation)) + b"\n")
        key = observation.provenance.commit_key
        if chain.hexdigest() != stated:
            raise _damaged(path, number, "its checksum does not match the lines up to it")
        if key in self.by_key:
            raise _damaged(path, number, f"its commit key {key} stands on an earlier line")
        self._chain = chain
        self.observations.append(observation)
        self.by_key[key] = observation
        self.checks.append(stated)


class _JournalFile:
    """The file under a journal, locked while it is open, always ending with a whole line."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = folder / JOURNAL_NAME
        self._lock = _lock(folder / LOCK_NAME)
        self._descriptor = -1
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            os.fchmod(self._descriptor, 0o600)
            _sync_folder(folder)
            self._repair()
        except BaseException:
            self.close()
            raise

    def lines(self) -> list[bytes]:
        return self.path.read_bytes().split(b"\n")[:-1]

    def append(self, data: bytes) -> None:
        if self._descriptor < 0:
            raise StoreError(f"{self.path}: the memory is closed; open it again to commit")
        if os.fstat(self._descriptor).st_size != self._size:
            raise StoreError(f"{self.path}: changed under the open memory; close it and open it again")
        try:
            written = 0
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
            os.fsync(self._descriptor)
        except BaseException as error:
            os.ftruncate(self._descriptor, self._size)
            if isinstance(error, OSError):
                raise StoreError(f"{self.path}: cannot be written ({error}); nothing was kept") from error
            raise
        self._size += len(data)

    def close(self) -> None:
        for descriptor in (self._descriptor, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptor = self._lock = -1

    def _repair(self) -> None:
        """Cut off a last line that a kill tore; give one that only lacks its line end what it lacks."""
        data = self.path.read_bytes()
        self._size = data.rfind(b"\n") + 1
        torn = data[self._size :]
        if not torn:
            return
        if _is_json(torn):
            os.write(self._descriptor, b"\n")
            self._size = len(data) + 1
        else:
            _logger.warning("%s: cut off a torn last line of %d bytes", self.path, len(torn))
            os.ftruncate(self._descriptor, self._size)
        os.fsync(self._descriptor)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise StoreBusyError(
            f"{path.parent}: the memory is open elsewhere; close it there, or use another folder"
        ) from error
    return descriptor


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _header_line(identity: StoreIdentity) -> bytes:
    header = asdict(identity)
    check = hashlib.sha256(canonical(header)).hexdigest()
    return canonical({"check": check, "header": header}) + b"\n"


def _check_identity(path: Path, line: bytes, identity: StoreIdentity) -> None:
    try:
        data: Mapping[str, Any] = json.loads(line)
        header, check = data["header"], data["check"]
        found = StoreIdentity(**header)
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path, 1, str(error)) from error
    if hashlib.sha256(canonical(header)).hexdigest() != check:
        raise _damaged(path, 1, "its checksum does not match")
    for one in fields(StoreIdentity):
        there, here = getattr(found, one.name), getattr(identity, one.name)
        if there != here:
            raise IdentityError(
                f"{path.parent}: the memory was made with {one.name} {there!r} and is opened with {here!r}; "
                "open it as it was made, or export it and import it into a new folder"
            )


def _damaged(path: Path, number: int, what: str) -> JournalDamagedError:
    return JournalDamagedError(f"{path}:{number}: is damaged ({what}); restore the file from a copy")
