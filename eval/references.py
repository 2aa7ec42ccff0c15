"""Denotations of reference queries, each worked out once while there is room to keep it."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

from merit_sql.domain.execution import Execution

Denotations = tuple[Execution, ...]

_CELLS = 2_000_000
"""Cells kept at most; the largest reference results of the public benchmarks hold a few thousand."""


class ReferenceCache:
    """The most recently used denotations, up to a number of cells; safe for threads.

    Two threads that miss the same key at once both compute it, to the same end.
    """

    def __init__(self, cells: int = _CELLS) -> None:
        """An empty cache that keeps at most `cells` cells of results."""
        self._room = cells
        self._kept: OrderedDict[Hashable, Denotations] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, compute: Callable[[], Denotations]) -> Denotations:
        """The denotations under `key`, computed where they are not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found = compute()
        with self._lock:
            if key not in self._kept:
                self._kept[key] = found
                self._room -= _cells(found)
            while self._room < 0:
                _, dropped = self._kept.popitem(last=False)
                self._room += _cells(dropped)
        return found


def _cells(denotations: Denotations) -> int:
    return sum(len(one.rows) * len(one.columns) for one in denotations)
