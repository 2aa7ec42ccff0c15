"""Encoders by name: sentence-transformers on the CPU, each distinct text encoded once."""

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merit_sql.domain.encoder import Encoder
from merit_sql.domain.errors import ModelError
from merit_sql.models.download import fetch
from merit_sql.models.messages import encodable
from merit_sql.models.progress import ConsoleProgress
from merit_sql.models.registry import MINILM_L6_V2
from merit_sql.models.sources import SourceError, probe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PAPER = ("BAAI/bge-large-en-v1.5", "d4aa6901d3a41ba39fb536a557fa166f842b0e09")
"""Hub name and revision of the encoder that the method's authors used."""

_HUB = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)@(?P<revision>[\w.-]+)")
_REMEMBERED = 50_000
_MINILM_TOKENS = 256


class SentenceEncoder:
    """An `Encoder` over a sentence-transformers model; what it encoded before it remembers, up to a bound.

    Texts are encoded one at a time and on one thread: the low bits of a vector depend on its neighbours in a
    batch and on how many threads share its sums, and a run that is resumed or repeated with other batches or
    on other cores would rank ties another way. Vectors are float32 and L2-normalised. The model, and torch
    with it, is loaded at the first text. Safe for threads.
    """

    def __init__(
        self, name: str, revision: str, dimension: int | None, *, remembered: int = _REMEMBERED
    ) -> None:
        """An encoder of this id and revision; `dimension` is None where only the model knows it."""
        self.id = name
        self.revision = revision
        self._dimension = dimension
        self._remembered = remembered
        self._vectors: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._model: Any = None
        self._lock = threading.Lock()

    @property
    def dimension(self) -> int:
        """See `Encoder.dimension`."""
        if self._dimension is None:
            with self._lock:
                self._dimension = int(self._loaded().get_embedding_dimension())
        return self._dimension

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """See `Encoder.encode`."""
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        with self._lock:
            return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> "NDArray[np.float32]":
        known = self._vectors.get(text)
        if known is not None:
            self._vectors.move_to_end(text)
            return known
        model = self._loaded()
        with _one_thread():
            vector: NDArray[np.float32] = model.encode(
                [encodable(text)], normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
            )[0]
        self._vectors[text] = vector
        if len(self._vectors) > self._remembered:
            self._vectors.popitem(last=False)
        return vector

    def _loaded(self) -> Any:  # noqa: ANN401 - sentence-transformers' own type is loaded with torch
        if self._model is None:
            self._model = self._load()
        return self._model

    def _load(self) -> Any:  # noqa: ANN401 - see _loaded
        from sentence_transformers import SentenceTransformer

        # What is in the hub's own cache serves where the hub cannot be reached; asking first and briefly
        # spares a minute of the library's repeated attempts.
        try:
            probe(self.id, "config.json", self.revision)
            unreachable = None
        except SourceError as error:
            unreachable = error
        try:
            return SentenceTransformer(
                self.id, revision=self.revision, device="cpu", local_files_only=unreachable is not None
            )
        except (OSError, ValueError) as error:
            raise ModelError(
                f"the encoder {self.id} at revision {self.revision} could not be had: "
                f"{unreachable or error}; where the model hub cannot be reached, "
                f"embedded:{MINILM_L6_V2.name} can be used"
            ) from error


class EmbeddedEncoder(SentenceEncoder):
    """all-MiniLM-L6-v2 from the registry's verified files: 384 dimensions, 256 tokens, mean pooling."""

    def __init__(self) -> None:
        """Nothing is fetched before the first text."""
        super().__init__(MINILM_L6_V2.name, MINILM_L6_V2.revision, 384)

    def _load(self) -> Any:  # noqa: ANN401 - see SentenceEncoder
        with ConsoleProgress() as progress:
            folder = fetch(MINILM_L6_V2, progress=progress)
        with _without_bars():
            return _minilm(folder)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch sum on one thread, and give the program back the number of threads that it had set."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _without_bars() -> Iterator[None]:
    """Keep the library from drawing a bar for the second that loading takes."""
    logging = import_module("transformers.utils.logging")
    drawn = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if drawn:
            logging.enable_progress_bar()


def _minilm(folder: Path) -> Any:  # noqa: ANN401 - see SentenceEncoder
    """The model put together from files whose hashes are known, and nothing else of its upload."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    offline = {"local_files_only": True}
    words = Transformer(
        str(folder),
        max_seq_length=_MINILM_TOKENS,
        model_kwargs=offline,
        processor_kwargs=offline,
        config_kwargs=offline,
    )
    pooling = Pooling(words.get_embedding_dimension(), pooling_mode="mean")
    return SentenceTransformer(modules=[words, pooling, Normalize()], device="cpu")


def get_encoder(name: str) -> Encoder:
    """The encoder of that name; nothing is loaded or fetched before its first text.

    Names are ``embedded:all-minilm-l6-v2``, ``paper:bge-large-en-v1.5``, and ``OWNER/NAME@REVISION`` for any
    sentence-transformers model on the hub. Raises `ModelError` for any other.
    """
    if name == f"embedded:{MINILM_L6_V2.name}":
        return EmbeddedEncoder()
    if name == "paper:bge-large-en-v1.5":
        return SentenceEncoder(*PAPER, dimension=1024)
    match = _HUB.fullmatch(name)
    if match is not None:
        return SentenceEncoder(match["repository"], match["revision"], dimension=None)
    raise ModelError(
        f"there is no encoder {name!r}; encoders are named embedded:{MINILM_L6_V2.name}, "
        "paper:bge-large-en-v1.5, or OWNER/NAME@REVISION on the model hub"
    )
