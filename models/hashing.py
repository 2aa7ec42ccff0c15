"""A small deterministic encoder for tests and offline use: signed feature hashing of words."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TOKEN = re.compile(r"[a-z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class HashingEncoder:
    """An `Encoder` that knows words and nothing of their meaning.

    Each token ``[a-z0-9_]+`` of the lower-cased text adds +1 or −1 to one component; both the component and
    the sign come from the token's BLAKE2b hash. The sum is L2-normalised. A text without tokens, or whose
    tokens cancel out, becomes the first unit vector.
    """

    dimension: int = 64
    id: str = field(default="hashing", init=False)
    revision: str = field(default="blake2b-1", init=False)

    def __post_init__(self) -> None:
        if self.dimension < 1:
            raise ValueError(f"an encoder has at least one dimension, not {self.dimension}")

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """See `Encoder.encode`."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float64)
        for index, text in enumerate(texts):
            vectors[index] = self._vector(text)
        return vectors.astype(np.float32)

    def _vector(self, text: str) -> "NDArray[np.float64]":
        total = np.zeros(self.dimension, dtype=np.float64)
        for token in _TOKEN.findall(text.lower()):
            number = int.from_bytes(hashlib.blake2b(token.encode("ascii"), digest_size=8).digest(), "big")
            total[(number >> 1) % self.dimension] += 1.0 if number & 1 else -1.0
        if not total.any():
            total[0] = 1.0
        unit: NDArray[np.float64] = total / np.linalg.norm(total)
        return unit
