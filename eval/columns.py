"""The hard case of comparing two results: many columns with the same values, in another order.

Deciding whether two tables are equal up to an order of rows and columns is graph isomorphism. The search
below is individualisation and refinement: columns and rows colour each other until nothing changes; where
columns still look alike, one of the first table is matched with each candidate of the second in turn.
Colours are 64-bit hashes of what they stand for. Equal tables always have equal colours, so a difference
of colours is proof; agreement is not, and ends in an exact comparison.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merit_sql.domain.execution import Cell, Row

Codes = NDArray[np.int64]
Colours = NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def equal_up_to_columns(gold: Sequence[Row], predicted: Sequence[Row]) -> bool:
    """Whether some permutation of the columns makes the two multisets of rows equal.

    Both tables are non-empty and of one shape, rows x columns.
    """
    left, right = _encode(gold, predicted)
    return _Search(_Table(left), _Table(right)).run()


def _encode(gold: Sequence[Row], predicted: Sequence[Row]) -> tuple[Codes, Codes]:
    """Both tables with equal values replaced by equal numbers."""
    numbers: dict[Cell, int] = {}
    width = len(gold[0])

    def encode(rows: Sequence[Row]) -> Codes:
        flat = [numbers.setdefault(cell, len(numbers)) for row in rows for cell in row]
        return np.array(flat, dtype=np.int64).reshape(-1, width)

    return encode(gold), encode(predicted)


def _mix(values: Colours) -> Colours:
    """A bijection of 64-bit numbers that scatters them (the finaliser of SplitMix64)."""
    mixed = values + _ODD
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))


class _Table:
    """One table with the colours that its columns have so far."""

    def __init__(self, codes: Codes) -> None:
        rows, counts = np.unique(codes, axis=0, return_counts=True)
        self.codes = rows
        self.counts = counts
        self.cells = _mix(rows.astype(np.uint64))
        self.weights = _mix(counts.astype(np.uint64))

    @property
    def width(self) -> int:
        return int(self.codes.shape[1])

    def refine(self, colours: Colours) -> Iterator[Colours]:
        """Rounds of refinement from `colours`; the last one separates no more columns than the one before."""
        separated = 0
        while (found := len(np.unique(colours))) > separated:
            separated = found
            rows = _mix(_mix(self.cells + colours).sum(axis=1, dtype=np.uint64) + self.weights)
            columns = _mix(self.cells + rows[:, np.newaxis]).sum(axis=0, dtype=np.uint64)
            colours = _mix(colours + _mix(columns))
            yield colours

    def twins(self) -> list[int]:
        """For each column the first column with the very same cells: such columns are interchangeable."""
        first: dict[bytes, int] = {}
        return [first.setdefault(self.codes[:, column].tobytes(), column) for column in range(self.width)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """How the first table was refined at one depth of the search, and which of its columns is next."""

    rounds: list[Colours]
    column: int | None


class _Search:
    """Depth-first search for a matching; the first table always takes the same path, so it is walked once."""

    def __init__(self, gold: _Table, predicted: _Table) -> None:
        self.gold = gold
        self.predicted = predicted
        self.gold_twins = gold.twins()
        self.twins = predicted.twins()
        self.levels: list[_Level] = []

    def run(self) -> bool:
        """Whether some matching of the columns makes the tables equal."""
        start = np.zeros(self.gold.width, dtype=np.uint64)
        self.levels.append(self._level(start))
        pending = [(0, start)]
        while pending:
            depth, start = pending.pop()
            colours = self._refine_alike(depth, start)
            if colours is None:
                continue
            level = self.levels[depth]
            if level.column is None:
                if self._equal(level.rounds[-1], colours):
                    return True
                continue
            if len(self.levels) == depth + 1:
                self.levels.append(self._level(_single_out(level.rounds[-1], level.column)))
            wanted = level.rounds[-1][level.column]
            candidates = {self.twins[column]: column for column in np.flatnonzero(colours == wanted).tolist()}
            pending.extend((depth + 1, _single_out(colours, column)) for column in candidates.values())
        return False

    def _level(self, start: Colours) -> _Level:
        rounds = list(self.gold.refine(start))
        return _Level(rounds=rounds, column=self._undecided(rounds[-1]))

    def _undecided(self, colours: Colours) -> int | None:
        """A column of the smallest colour class that holds columns which differ; None where there is none."""
        classes: dict[int, list[int]] = {}
        for column, colour in enumerate(colours.tolist()):
            classes.setdefault(colour, []).append(column)
        mixed = [
            columns
            for columns in classes.values()
            if any(self.gold_twins[column] != self.gold_twins[columns[0]] for column in columns)
        ]
        return min(mixed, key=len)[0] if mixed else None

    def _refine_alike(self, depth: int, start: Colours) -> Colours | None:
        """The refined colours of the second table, or None as soon as they differ from the first table's."""
        colours = start
        for wanted, found in zip(self.levels[depth].rounds, self.predicted.refine(start), strict=True):
            if not np.array_equal(np.sort(wanted), np.sort(found)):
                return None
            colours = found
        return colours

    def _equal(self, left: Colours, right: Colours) -> bool:
        """The exact comparison once colours say which column stands for which."""
        order = np.empty(self.gold.width, dtype=np.int64)
        order[np.argsort(left)] = np.argsort(right)
        rows, index = np.unique(self.predicted.codes[:, order], axis=0, return_index=True)
        return np.array_equal(rows, self.gold.codes) and np.array_equal(
            self.predicted.counts[index], self.gold.counts
        )


def _single_out(colours: Colours, column: int) -> Colours:
    """`colours` with that of one column changed to a new one."""
    singled = colours.copy()
    singled[column] = _mix(singled[column : column + 1] + _FIRST)[0]
    return singled
