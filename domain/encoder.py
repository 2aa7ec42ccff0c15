"""The seam behind which texts become vectors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Encoder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def id(self) -> str:
        """Name of the encoder, as a store's metadata keeps it."""
        ...

    @property
    def revision(self) -> str:
        """What pins its weights: a revision or a hash."""
        ...

    @property
    def dimension(self) -> int:
        """Number of components of one vector."""
        ...

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Vectors of shape (len(texts), dimension), float32, L2-normalised rows."""
        ...
