"""The ledger of a stream: one line an episode, appended and flushed at its commit; the truth of a run."""

import json
import os
from pathlib import Path
from typing import Any

from merit_sql.domain.episode import EpisodeRecord
from merit_sql.domain.errors import DataError, MeritError
from merit_sql.domain.memory import MemoryStore, Observation
from merit_sql.domain.status import Regime, Status
from merit_sql.stores.episodic import EpisodicMemory
from merit_sql.stores.ranking import RetrievalPolicy
from merit_sql.stores.records import observation_from_dict, observation_to_dict


def record_to_dict(record: EpisodeRecord) -> dict[str, Any]:
    """An episode's record as JSON-able data."""
    return {
        "run": record.run,
        "method": record.method,
        "regime": record.regime.value,
        "query_id": record.query_id,
        "database_id": record.database_id,
        "position": record.position,
        "status": record.status.value,
        "confirmed_by": record.confirmed_by,
        "sql": record.sql,
        "attempts": record.attempts,
        "reflections": record.reflections,
        "memory_ids": record.memory_ids,
    }


def record_from_dict(data: dict[str, Any]) -> EpisodeRecord:
    """The inverse of `record_to_dict`."""
    return EpisodeRecord(**{**data, "regime": Regime(data["regime"]), "status": Status(data["status"])})


class LedgerError(MeritError):
    """A line could not be written; what was committed before it is safe."""


class ForeignMemoryError(DataError):
    """A memory that holds other observations than the ledger beside it."""


class Ledger:
    """The committer of a benchmark stream, and the reader of what it committed.

    A line is ``{"record": …, "observation": … or null}`` in canonical JSON. A torn last line, left by a
    kill, is cut off when the ledger is opened; anything else that is wrong with it is a `DataError`.
    """

    def __init__(self, path: Path) -> None:
        """Open or begin the ledger at `path`."""
        self.path = path
        self._memory: MemoryStore[RetrievalPolicy] | None = None
        self.records: list[EpisodeRecord] = []
        self.observations: list[Observation] = []
        _cut_torn_line(path)
        for record, observation in read_ledger(path):
            self._keep(record, observation)

    def remember_in(self, memory: EpisodicMemory) -> None:
        """From now on commit to `memory` too, which is brought up to the ledger first.

        Raises `ForeignMemoryError` where it holds something else than a beginning of the ledger's.
        """
        held = list(memory.observations)
        if held != self.observations[: len(held)]:
            raise ForeignMemoryError(f"{self.path}: the memory beside it was not made from this ledger")
        memory.commit_all(self.observations[len(held) :])
        self._memory = memory

    def commit(self, record: EpisodeRecord, observation: Observation | None) -> None:
        """Append the episode's line durably, then commit its observation to the memory."""
        if record.position != len(self.records):
            raise ValueError(f"position {record.position} cannot follow {len(self.records)} episodes")
        line = {
            "record": record_to_dict(record),
            "observation": None if observation is None else observation_to_dict(observation),
        }
        text = json.dumps(line, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        append_line(self.path, text)
        self._keep(record, observation)
        if self._memory is not None and observation is not None:
            self._memory.commit(observation)

    def _keep(self, record: EpisodeRecord, observation: Observation | None) -> None:
        self.records.append(record)
        if observation is not None:
            self.observations.append(observation)


def read_ledger(path: Path) -> list[tuple[EpisodeRecord, Observation | None]]:
    """Every whole line, in order; none where there is no file. Raises `DataError` at a damaged one."""
    lines: list[tuple[EpisodeRecord, Observation | None]] = []
    data = path.read_bytes() if path.exists() else b""
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), start=1):
        record, observation = _parse(path, number, line)
        if record.position != number - 1:
            raise DataError(
                f"{path}:{number}: holds position {record.position}, expected {number - 1}; "
                "the ledger was edited or mixed up: start the run in another folder"
            )
        lines.append((record, observation))
    return lines


def append_line(path: Path, text: str) -> None:
    """Append one line and wait until it is on disk; a line torn by a kill before it stays one of its own."""
    try:
        with path.open("ab+") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                text = text if file.read(1) == b"\n" else f"\n{text}"
            file.write(text.encode("utf-8") + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise LedgerError(
            f"{path}: cannot be written ({error.strerror}); mend that, and the same command goes on from the "
            "last episode that was committed"
        ) from error


def _cut_torn_line(path: Path) -> None:
    if not path.exists():
        return
    with path.open("rb+") as file:
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole != len(data):
            file.truncate(whole)


def _parse(path: Path, number: int, line: bytes) -> tuple[EpisodeRecord, Observation | None]:
    try:
        data = json.loads(line)
        observation = data["observation"]
        return (
            record_from_dict(data["record"]),
            None if observation is None else observation_from_dict(observation),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path}:{number}: is no line of a ledger ({error}); restore the file or start elsewhere"
        ) from error
