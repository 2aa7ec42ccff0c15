"""Collaborators of the graph that charge their time to a stopwatch, and change nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from merit_sql.domain.encoder import Encoder
from merit_sql.domain.episode import Case, Oracle, Verdict
from merit_sql.domain.memory import Gate, MemoryQuery, MemoryStore, Observation, Retrieved
from merit_sql.eval.timings import Stopwatch
from merit_sql.stores.ranking import RetrievalPolicy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class TimedOracle:
    """An oracle whose judging is database time."""

    inner: Oracle
    watch: Stopwatch

    @property
    def name(self) -> str:
        """See `Oracle.name`."""
        return self.inner.name

    def judge(self, case: Case, sql: str) -> Verdict:
        """See `Oracle.judge`."""
        with self.watch.timing("database"):
            return self.inner.judge(case, sql)


@dataclass(frozen=True, slots=True)
class TimedMemory:
    """A memory whose retrieving is retrieval time."""

    inner: MemoryStore[RetrievalPolicy]
    watch: Stopwatch

    def retrieve(self, query: MemoryQuery, gate: Gate, policy: RetrievalPolicy) -> Retrieved:
        """See `MemoryStore.retrieve`."""
        with self.watch.timing("retrieval"):
            return self.inner.retrieve(query, gate, policy)

    def commit(self, observation: Observation) -> None:
        """See `MemoryStore.commit`."""
        self.inner.commit(observation)

    def digest(self) -> str:
        """See `MemoryStore.digest`."""
        return self.inner.digest()

    def next_position(self) -> int:
        """See `MemoryStore.next_position`."""
        return self.inner.next_position()


@dataclass(frozen=True, slots=True)
class TimedEncoder:
    """An encoder whose encoding is encoder time, wherever it happens."""

    inner: Encoder
    watch: Stopwatch

    @property
    def id(self) -> str:
        """See `Encoder.id`."""
        return self.inner.id

    @property
    def revision(self) -> str:
        """See `Encoder.revision`."""
        return self.inner.revision

    @property
    def dimension(self) -> int:
        """See `Encoder.dimension`."""
        return self.inner.dimension

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """See `Encoder.encode`."""
        with self.watch.timing("encoder"):
            return self.inner.encode(texts)
