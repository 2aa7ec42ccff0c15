"""EpisodicMemory: the face of the cross-episode memory."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from merit_sql.domain.encoder import Encoder
from merit_sql.domain.errors import IdentityError
from merit_sql.domain.memory import Gate, MemoryQuery, Observation, RankedMemory, Retrieved
from merit_sql.stores.dense import Float32, IndexRecord, encode, record_id
from merit_sql.stores.derived import Channels, Derived
from merit_sql.stores.folding import entry_of
from merit_sql.stores.gate import CommitKey, Vantage, assert_causal
from merit_sql.stores.journal import Journal, StoreError, StoreIdentity
from merit_sql.stores.mirror import ChromaMirror
from merit_sql.stores.ranking import RetrievalPolicy, rank
from merit_sql.stores.texts import MemoryText, dense_text

CHROMA_FOLDER = "chroma"


class EpisodicMemory:
    """The causally gated memory; a `MemoryStore[RetrievalPolicy]`.

    The journal is the truth; vectors, token counts and the Chroma directory are derived from it. Threads
    may share one object. Use it as a context manager, or `close` it.
    """

    def __init__(
        self, journal: Journal, encoder: Encoder, memory_text: MemoryText, chroma: Path | None
    ) -> None:
        """Build the indexes over `journal`, with Chroma at `chroma`; use `open` or `in_memory` instead."""
        self._journal = journal
        self._encoder = encoder
        self._memory_text = memory_text
        self._mirror: ChromaMirror | None = None
        self._closed = False
        self._lock = threading.RLock()
        self._derived = Derived(journal.observations, encoder.dimension)
        try:
            if chroma is not None:
                self._mirror = ChromaMirror(chroma, _identity(encoder, memory_text))
            self._index(range(len(journal.observations)), self._vectors_of_journal())
            if self._mirror is not None:
                self._mirror.bring_up(self._records(range(len(journal.observations))))
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(
        cls, folder: Path, encoder: Encoder, *, memory_text: MemoryText = MemoryText.COMPACT
    ) -> "EpisodicMemory":
        """The memory kept in `folder` (``journal.jsonl`` and ``chroma/``), made where it is missing.

        A Chroma directory that lags, is damaged, or belongs elsewhere is brought up from the journal.
        Raises `StoreBusyError` where the folder is open elsewhere, `IdentityError` where it was made
        with another encoder, revision, dimension or memory text, `JournalDamagedError` at a damaged journal.
        """
        journal = Journal.open(folder, _identity(encoder, memory_text))
        return cls(journal, encoder, memory_text, folder / CHROMA_FOLDER)

    @classmethod
    def in_memory(cls, encoder: Encoder, *, memory_text: MemoryText = MemoryText.COMPACT) -> "EpisodicMemory":
        """An empty memory that leaves nothing behind; it ranks exactly as one on disk."""
        return cls(Journal(), encoder, memory_text, None)

    @property
    def observations(self) -> Sequence[Observation]:
        """Everything that was committed, in order."""
        return tuple(self._journal.observations)

    def commit(self, observation: Observation) -> None:
        """Keep an observation for good, journal first; the same commit key twice changes nothing."""
        self.commit_all([observation])

    def commit_all(self, observations: Sequence[Observation]) -> int:
        """Keep several observations with one write, in order; how many were new.

        Raises `DataError` at an observation that contradicts itself, `ModelError` where a text cannot be
        encoded, `StoreError` where the journal cannot be written; nothing is kept then.
        """
        with self._lock:
            self._require_open()
            encoded = self._encode(observations)
            rows = self._journal.append(observations)
            self._index(rows, encoded)
            if self._mirror is not None and rows:
                self._mirror.put(self._records(rows), lambda: self._records(range(rows.stop)))
            return len(rows)

    def retrieve(self, query: MemoryQuery, gate: Gate, policy: RetrievalPolicy) -> Retrieved:
        """What `policy` serves of the entries that are legal from `gate`.

        Every entry is the fold of its legal observations. Raises `CausalityError` if an illegal one came
        back all the same, `IdentityError` where the policy ranks by another memory text than the store's.
        """
        if policy.memory_text != self._memory_text:
            raise IdentityError(
                f"the policy ranks by memory text {policy.memory_text.value!r}, and the memory was made with "
                f"{self._memory_text.value!r}; make another memory in a new folder, or change the policy"
            )
        with self._lock:
            self._require_open()
            observations = self._journal.observations
            vantage = Vantage(gate=gate, scope=policy.scope, committed=self._journal.by_key)
            channels = Channels(query, self._encoder, self._derived)
            ranked = rank(
                self._derived.candidates(vantage),
                query,
                gate,
                policy,
                dense=channels.dense,
                lexical=channels.lexical,
            )
            memories = tuple(
                RankedMemory(
                    entry=entry_of(one.candidate.fold, observations),
                    score=one.score,
                    dense=one.dense,
                    lexical=one.lexical,
                    same_type=one.same_type,
                )
                for one in ranked
            )
            assert_causal([memory.entry for memory in memories], vantage)
        return Retrieved(memories=memories)

    def digest(self) -> str:
        """sha256 (hex) over everything that was committed, in order."""
        return self._journal.digest()

    def next_position(self) -> int:
        """One more than the largest position committed; 0 for an empty memory."""
        with self._lock:
            return 1 + max((one.provenance.position for one in self._journal.observations), default=-1)

    def close(self) -> None:
        """Let go of the folder; committing and retrieving are over. Closing twice is fine."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                if self._mirror is not None:
                    self._mirror.close()
            finally:
                self._journal.close()

    def __enter__(self) -> "EpisodicMemory":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError("the memory is closed; open it again")

    def _encode(self, observations: Sequence[Observation]) -> dict[CommitKey, Float32]:
        """Vectors, by commit key, of those observations that are new and have a text."""
        texts = {
            one.provenance.commit_key: dense_text(one.content, self._memory_text)
            for one in reversed(observations)
            if one.content is not None and one.provenance.commit_key not in self._journal.by_key
        }
        return dict(zip(texts, encode(self._encoder, list(texts.values())), strict=True))

    def _vectors_of_journal(self) -> dict[CommitKey, Float32]:
        """Vectors of every observation with a text: from Chroma where it has them whole, else encoded."""
        vectors: dict[CommitKey, Float32] = {}
        texts: dict[CommitKey, str] = {}
        for key, observation in self._journal.by_key.items():
            if observation.content is None:
                continue
            text = dense_text(observation.content, self._memory_text)
            known = None if self._mirror is None else self._mirror.vector(record_id(key), text)
            if known is None:
                texts[key] = text
            else:
                vectors[key] = known
        vectors.update(zip(texts, encode(self._encoder, list(texts.values())), strict=True))
        return vectors

    def _index(self, rows: Sequence[int], vectors: Mapping[CommitKey, Float32]) -> None:
        for row in rows:
            self._derived.append(row, vectors.get(self._journal.observations[row].provenance.commit_key))

    def _records(self, rows: Sequence[int]) -> list[IndexRecord]:
        return [
            IndexRecord(
                observation=observation,
                check=self._journal.checks[row],
                document=dense_text(observation.content, self._memory_text),
                vector=self._derived.vectors[row],
            )
            for row in rows
            if (observation := self._journal.observations[row]).content is not None
        ]


def _identity(encoder: Encoder, memory_text: MemoryText) -> StoreIdentity:
    return StoreIdentity(
        encoder=encoder.id,
        revision=encoder.revision,
        dimension=encoder.dimension,
        memory_text=memory_text.value,
    )
