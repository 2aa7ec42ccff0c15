"""What retrieval reads: vectors, token counts and identities, one row an observation, in journal order."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from merit_sql.domain.encoder import Encoder
from merit_sql.domain.memory import MemoryQuery, Observation
from merit_sql.stores.dense import VectorTable, encode
from merit_sql.stores.folding import fold
from merit_sql.stores.gate import Vantage, legal
from merit_sql.stores.journal import StoreError
from merit_sql.stores.lexical import LexicalIndex
from merit_sql.stores.ranking import Candidate
from merit_sql.stores.texts import lexical_text, query_text, tokens


class Derived:
    """The indexes over a list of observations.

    Row i belongs to observation i. An observation without a text has a row of zeros, which nothing ranks:
    it cannot represent an entry.
    """

    def __init__(self, observations: Sequence[Observation], dimension: int) -> None:
        """Empty indexes over `observations`, whose rows are then added with `append`, in order."""
        self._observations = observations
        self._rows: dict[str, list[int]] = {}
        self.vectors = VectorTable(dimension)
        self.lexical = LexicalIndex()

    def append(self, row: int, vector: NDArray[np.float32] | None) -> None:
        """Index the next observation; `vector` is None exactly where it has no text.

        Raises `StoreError` where an interrupted commit left an observation out.
        """
        if row != len(self.vectors):
            raise StoreError("a commit was interrupted and the indexes lag behind: open the memory again")
        observation = self._observations[row]
        self._rows.setdefault(observation.entry_id, []).append(row)
        if observation.content is None or vector is None:
            self.vectors.append(None)
            self.lexical.append([])
        else:
            self.vectors.append(vector)
            self.lexical.append(tokens(lexical_text(observation.content)))

    def candidates(self, vantage: Vantage) -> list[Candidate]:
        """The folds of what is legal from a vantage; an identity with nothing to serve is left out."""
        candidates: list[Candidate] = []
        for identity, rows in self._rows.items():
            folded = fold(legal(rows, self._observations, vantage), self._observations)
            if folded is None:
                continue
            content = self._observations[folded.representative].content
            if content is not None:
                candidates.append(Candidate(id=identity, error_type=content.error_type, fold=folded))
        return candidates


class Channels:
    """The raw scores of one query in either channel. The query is encoded once, and only if it is needed."""

    def __init__(self, query: MemoryQuery, encoder: Encoder, derived: Derived) -> None:
        """Prepare the scores of `query` over the rows of `derived`."""
        self._text = query_text(query)
        self._encoder = encoder
        self._derived = derived

    @cached_property
    def _vector(self) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = encode(self._encoder, [self._text])[0]
        return vector

    @cached_property
    def _tokens(self) -> list[str]:
        return tokens(self._text)

    def dense(self, rows: Sequence[int]) -> list[float]:
        """Inner products of the query's vector with those of `rows`."""
        scores: list[float] = self._derived.vectors.scores(self._vector, np.array(rows)).tolist()
        return scores

    def lexical(self, rows: Sequence[int]) -> list[float]:
        """BM25 of `rows` as one collection."""
        scores: list[float] = self._derived.lexical.scores(self._tokens, np.array(rows)).tolist()
        return scores
