"""BM25 over any subset of the memory, from token counts that are kept as observations arrive."""

import math
from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

K1 = 1.5
B = 0.75


class LexicalIndex:
    """Token counts of every row, by token, and row lengths.

    Scores are those of method.md, "BM25": with N, df and the mean length over the rows asked for, and
    ``IDF = ln(1 + (N − df + 0.5)/(df + 0.5))``.
    """

    def __init__(self) -> None:
        """An index without rows."""
        self._rows: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self._lengths = array("q")

    def append(self, tokens: Sequence[str]) -> None:
        """Add the next row."""
        row = len(self._lengths)
        for token, count in Counter(tokens).items():
            self._rows.setdefault(token, array("q")).append(row)
            self._counts.setdefault(token, array("q")).append(count)
        self._lengths.append(len(tokens))

    def scores(self, query: Sequence[str], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Raw scores, float64 of shape (len(rows),), of distinct `rows` against the tokens of a query.

        Terms are added in the order of the query, repeats included, so that equal rows get equal bits.
        """
        scores = np.zeros(len(rows), dtype=np.float64)
        if not len(rows):
            return scores
        lengths = np.array(self._lengths, dtype=np.int64)[rows]
        mean_length = float(lengths.sum()) / len(rows)
        if mean_length == 0:
            return scores
        place = np.full(len(self._lengths), -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        norm = np.asarray(K1 * (1 - B + B * lengths / mean_length), dtype=np.float64)
        terms: dict[str, NDArray[np.float64] | None] = {}
        for token in query:
            if token not in terms:
                terms[token] = self._term(token, place, norm)
            term = terms[token]
            if term is not None:
                scores += term
        return scores

    def _term(
        self, token: str, place: NDArray[np.int64], norm: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        if token not in self._rows:
            return None
        places = place[np.array(self._rows[token], dtype=np.int64)]
        inside = places >= 0
        df = int(inside.sum())
        if df == 0:
            return None
        frequency = np.zeros(len(norm), dtype=np.float64)
        frequency[places[inside]] = np.array(self._counts[token], dtype=np.int64)[inside]
        idf = math.log(1 + (len(norm) - df + 0.5) / (df + 0.5))
        return idf * (frequency * (K1 + 1) / (frequency + norm))
