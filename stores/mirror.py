"""Keeps the Chroma directory in step with the journal, whatever state it is found in."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from merit_sql.stores.dense import ChromaIndex, Float32, IndexDamagedError, IndexRecord, StoredRecord
from merit_sql.stores.journal import StoreError, StoreIdentity
from merit_sql.stores.seal import break_seal, seal, unsoundness

_logger = logging.getLogger(__name__)


class ChromaMirror:
    """A `ChromaIndex` that is made anew where it cannot be used.

    Nothing is lost by that: the journal has every observation, and can be encoded again.
    """

    def __init__(self, path: Path, identity: StoreIdentity) -> None:
        """Open the index at `path` and read it, or begin an empty one in its place."""
        self._path = path
        self._identity = identity
        self._index, self._stored = self._open()

    def _open(self) -> tuple[ChromaIndex, dict[str, StoredRecord]]:
        try:
            if fault := unsoundness(self._path):
                raise IndexDamagedError(f"{self._path}: {fault}")
            break_seal(self._path)
            index = ChromaIndex(self._path, self._identity)
        except IndexDamagedError as damage:
            return self._anew(damage), {}
        try:
            return index, index.read()
        except IndexDamagedError as damage:
            index.close()
            return self._anew(damage), {}
        except BaseException:
            index.close()
            raise

    def _anew(self, damage: IndexDamagedError) -> ChromaIndex:
        _logger.warning("%s; it is made again from the journal", damage)
        break_seal(self._path)
        return ChromaIndex.anew(self._path, self._identity)

    def vector(self, record_id: str, document: str) -> Float32 | None:
        """The vector of `document` as the index held it when it was opened; None where it has to be made."""
        stored = self._stored.get(record_id)
        return stored.vector if stored and stored.whole and stored.document == document else None

    def bring_up(self, records: Sequence[IndexRecord]) -> None:
        """Make the index hold exactly `records`, in as few writes as that takes."""
        stale = [
            one
            for one in records
            if (stored := self._stored.get(one.id)) is None
            or not stored.whole
            or (stored.document, stored.metadata) != (one.document, one.metadata)
        ]
        foreign = sorted(self._stored.keys() - {one.id for one in records})
        self._stored = {}
        if stale or foreign:
            _logger.warning(
                "%s: brought up from the journal: %d records written, %d unknown ones removed",
                self._path,
                len(stale),
                len(foreign),
            )
            self._write(stale, foreign, lambda: records)

    def put(self, records: Sequence[IndexRecord], everything: Callable[[], Sequence[IndexRecord]]) -> None:
        """Add records; where the index turns out damaged, make it anew from `everything`."""
        self._write(records, [], everything)

    def close(self) -> None:
        """Let go of the directory, and seal it."""
        self._index.close()
        seal(self._path)

    def _write(
        self,
        records: Sequence[IndexRecord],
        unknown: Sequence[str],
        everything: Callable[[], Sequence[IndexRecord]],
    ) -> None:
        try:
            self._index.remove(unknown)
            self._index.put(records)
        except IndexDamagedError as damage:
            self._index.close()
            try:
                self._index = self._anew(damage)
                self._index.put(everything())
            except (IndexDamagedError, OSError) as error:
                raise StoreError(
                    f"{self._path}: Chroma cannot be written ({error}). What was committed is safe in the "
                    "journal; free what is in the way and open the memory again"
                ) from error
