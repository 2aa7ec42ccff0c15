"""Vectors: exact scores over a matrix in memory, and the Chroma collection that keeps them on disk.

Chroma is derived from the journal. It holds one record per observation that has a text: the text, its
vector, where it came from, and the journal's checksum up to it. Scores never come from Chroma, whose
search is approximate.
"""

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from merit_sql.domain.encoder import Encoder
from merit_sql.domain.errors import ModelError
from merit_sql.domain.memory import Observation
from merit_sql.stores.gate import CommitKey
from merit_sql.stores.journal import StoreError, StoreIdentity
from merit_sql.stores.records import canonical
from merit_sql.stores.texts import encodable

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.collection_configuration import CreateHNSWConfiguration
    from chromadb.api.models.Collection import Collection
    from chromadb.config import Component

Float32: TypeAlias = NDArray[np.float32]
Metadata: TypeAlias = Mapping[str, object]

COLLECTION = "merit_observations"
PAGE = 1_000
"""Records per call: a `get` of everything fails on large collections."""

HNSW: "CreateHNSWConfiguration" = {
    "space": "ip",
    "sync_threshold": 10**9,
    "ef_construction": 10,
    "max_neighbors": 4,
}
"""Chroma's own index, which nothing here searches, kept cheap. The threshold keeps the vectors in Chroma's
SQLite file, where damage is an error that can be caught: its index files, once written and then damaged,
crash the process that reads them. The price is about 10 µs a record held at every write."""

BLOCK = 1_024
ENCODE_BATCH = 256


class IndexDamagedError(StoreError):
    """The Chroma directory cannot be used as it is; what it held can be made again from the journal."""


def encode(encoder: Encoder, texts: Sequence[str]) -> Float32:
    """Vectors of `texts`, shape (len(texts), dimension); raises `ModelError` at anything else."""
    parts = [
        np.asarray(encoder.encode(texts[start : start + ENCODE_BATCH]), dtype=np.float32)
        for start in range(0, len(texts), ENCODE_BATCH)
    ]
    if not parts:
        return np.empty((0, encoder.dimension), dtype=np.float32)
    vectors = np.concatenate(parts)
    if vectors.shape != (len(texts), encoder.dimension) or not np.isfinite(vectors).all():
        raise ModelError(
            f"encoder {encoder.id!r} gave vectors of shape {vectors.shape} for {len(texts)} texts, or "
            f"numbers that are not finite; expected finite ones of dimension {encoder.dimension}"
        )
    return vectors


class VectorTable:
    """One float32 vector a row, in a matrix that grows in blocks."""

    def __init__(self, dimension: int) -> None:
        """An empty table of vectors with `dimension` components."""
        self._matrix = np.zeros((BLOCK, dimension), dtype=np.float32)
        self._used = 0

    def append(self, vector: Float32 | None) -> None:
        """Add the next row; zeros for None."""
        if self._used == len(self._matrix):
            self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
        if vector is not None:
            self._matrix[self._used] = vector
        self._used += 1

    def __len__(self) -> int:
        return self._used

    def __getitem__(self, row: int) -> Float32:
        vector: Float32 = self._matrix[: self._used][row]
        return vector

    def scores(self, query: Float32, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Inner products in float64, shape (len(rows),), summed the same way for every row."""
        chosen = self._matrix[: self._used][rows].astype(np.float64)
        return np.asarray(np.einsum("ij,j->i", chosen, query.astype(np.float64)), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRecord:
    """What Chroma keeps of one observation. `check` is the journal's checksum up to and including it."""

    observation: Observation
    check: str
    document: str
    vector: Float32

    @property
    def id(self) -> str:
        """`record_id` of the observation."""
        return record_id(self.observation.provenance.commit_key)

    @property
    def metadata(self) -> dict[str, str | int | float | bool | None]:
        """Every key on every record, scalars only: Chroma's filters take a missing key for a match."""
        provenance, content = self.observation.provenance, self.observation.content
        return {
            "check": self.check,
            "vector_sha256": _vector_hash(self.vector),
            "entry_id": self.observation.entry_id,
            "error_type": content.error_type.value if content else "",
            "run": encodable(provenance.run),
            "method": encodable(provenance.method),
            "regime": provenance.regime.value,
            "query_id": encodable(provenance.query_id),
            "database_id": encodable(provenance.database_id),
            "position": provenance.position,
            "step": provenance.step,
            "polarity": provenance.polarity.value,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """A record as it was read back."""

    document: str
    metadata: Metadata
    vector: Float32

    @property
    def whole(self) -> bool:
        """Whether its vector is the one that was written."""
        return self.metadata.get("vector_sha256") == _vector_hash(self.vector)


def record_id(key: CommitKey) -> str:
    """Id of an observation's record: sha256 (hex) of its commit key, the same on every machine."""
    return hashlib.sha256(canonical(list(key))).hexdigest()


class ChromaIndex:
    """The Chroma directory of one store, for one process."""

    def __init__(self, path: Path, identity: StoreIdentity) -> None:
        """Open the directory, making what is missing.

        Raises `IndexDamagedError` where it is damaged, or was made for another store.
        """
        self._path = path
        self._identity = identity
        with _damage(path):
            self._client = _open_client(path)
        try:
            with _damage(path):
                self._collection = _open_collection(self._client, path, identity)
        except BaseException:
            self.close()
            raise

    @classmethod
    def anew(cls, path: Path, identity: StoreIdentity) -> "ChromaIndex":
        """An empty index at `path`, in place of whatever is there."""
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        return cls(path, identity)

    def read(self) -> dict[str, StoredRecord]:
        """All records by id, read in pages; raises `IndexDamagedError`."""
        records: dict[str, StoredRecord] = {}
        with _damage(self._path):
            for offset in range(0, self._collection.count(), PAGE):
                page = self._collection.get(
                    include=["embeddings", "documents", "metadatas"], limit=PAGE, offset=offset
                )
                embeddings, documents, metadatas = page["embeddings"], page["documents"], page["metadatas"]
                if embeddings is None or documents is None or metadatas is None:
                    raise IndexDamagedError(f"{self._path}: Chroma returned records without their parts")
                rows = zip(page["ids"], embeddings, documents, metadatas, strict=True)
                for one, embedding, document, metadata in rows:
                    records[one] = StoredRecord(
                        document=document,
                        metadata=dict(metadata or {}),
                        vector=np.asarray(embedding, dtype=np.float32),
                    )
        return records

    def put(self, records: Iterable[IndexRecord]) -> None:
        """Insert or replace records, in batches; raises `IndexDamagedError`."""
        pending = list(records)
        with _damage(self._path):
            for start in range(0, len(pending), PAGE):
                batch = pending[start : start + PAGE]
                self._collection.upsert(
                    ids=[one.id for one in batch],
                    embeddings=np.stack([one.vector for one in batch]),
                    documents=[one.document for one in batch],
                    metadatas=[one.metadata for one in batch],
                )

    def remove(self, ids: Sequence[str]) -> None:
        """Delete records; raises `IndexDamagedError`."""
        with _damage(self._path):
            for start in range(0, len(ids), PAGE):
                self._collection.delete(ids=list(ids[start : start + PAGE]))

    def close(self) -> None:
        """Let go of the directory, so that it can be opened again or deleted."""
        self._client.close()


def _vector_hash(vector: Float32) -> str:
    return hashlib.sha256(vector.astype("<f4").tobytes()).hexdigest()


def _collection_metadata(identity: StoreIdentity) -> dict[str, str | int]:
    return {
        "encoder": identity.encoder,
        "revision": identity.revision,
        "dimension": identity.dimension,
        "memory_text": identity.memory_text,
    }


def _open_client(path: Path) -> "Client":
    from chromadb.api import ServerAPI
    from chromadb.api.client import Client
    from chromadb.config import Settings, System

    path.mkdir(mode=0o700, exist_ok=True)
    system = System(
        Settings(is_persistent=True, persist_directory=str(path.resolve()), anonymized_telemetry=False)
    )
    # PersistentClient would go on using a system that failed to start at this path; this never registers one.
    system.instance(cast("type[Component]", ServerAPI))
    system.start()
    return Client.from_system(system)


def _open_collection(client: "Client", path: Path, identity: StoreIdentity) -> "Collection":
    from chromadb.errors import NotFoundError

    wanted = _collection_metadata(identity)
    try:
        collection = client.get_collection(COLLECTION, embedding_function=None)
    except NotFoundError:
        return client.create_collection(
            COLLECTION,
            embedding_function=None,
            metadata=wanted,
            configuration={"hnsw": HNSW},
        )
    index = collection.configuration_json.get("hnsw") or {}
    if any(index.get(name) != value for name, value in HNSW.items()):
        raise IndexDamagedError(f"{path}: Chroma's collection is configured as {index}, not as this store's")
    if dict(collection.metadata or {}) != wanted:
        raise IndexDamagedError(f"{path}: Chroma's collection is of {collection.metadata}, not of {wanted}")
    return collection


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Turn what Chroma raises over a damaged directory into `IndexDamagedError`."""
    from chromadb.errors import ChromaError

    try:
        yield
    except BaseException as error:
        # Chroma's Rust core panics over some damage, and a panic is no Exception and has no public class.
        panicked = type(error).__module__ == "pyo3_runtime"
        if panicked or isinstance(error, ChromaError | OSError | ValueError | KeyError | TypeError):
            raise IndexDamagedError(f"{path}: Chroma cannot use its directory ({error})") from error
        raise
