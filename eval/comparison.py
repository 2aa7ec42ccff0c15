"""Whether two denotations agree: Spider's test-suite comparison and BIRD's set comparison.

Cells compare as Python values: ``1 == 1.0``, ``'1' != 1``, ``None == None``; there is no tolerance.
"""

from collections import Counter
from collections.abc import Sequence

from merit_sql.domain.execution import Cell, Row


def same_set(gold: Sequence[Row], predicted: Sequence[Row]) -> bool:
    """BIRD's comparison: equal sets of rows; row order and duplicates do not count, column order does."""
    return set(gold) == set(predicted)


def same_denotation(gold: Sequence[Row], predicted: Sequence[Row], *, ordered: bool) -> bool:
    """Spider's comparison: equal up to one permutation of the columns and, unless `ordered`, of the rows.

    Two empty results are equal whatever their columns. The official evaluator asks a necessary test first
    (see `_sorted_row`), which also turns away some results that are equal: that is kept. The verdict is
    exact for any number of columns; nothing is sampled.
    """
    if not gold and not predicted:
        return True
    if len(gold) != len(predicted) or len(gold[0]) != len(predicted[0]):
        return False
    if gold == predicted and repr(gold) == repr(predicted):
        return True
    if not _may_agree(gold, predicted, ordered=ordered):
        return False
    if ordered:
        return Counter(zip(*gold, strict=True)) == Counter(zip(*predicted, strict=True))
    return _same_up_to_columns(gold, predicted)


_TYPE_TEXT = {kind: str(kind) for kind in (int, float, str, bytes, type(None))}


def _sort_key(cell: Cell) -> str:
    return str(cell) + _TYPE_TEXT[type(cell)]


def _sorted_row(row: Row) -> Row:
    """The cells sorted by value text followed by type text.

    The type text separates 1 from 1.0 although they are equal: (1.0, 10) sorts as it stands and (1, 10)
    as (10, 1), so these two rows are told apart.
    """
    return tuple(sorted(row, key=_sort_key))


def _may_agree(gold: Sequence[Row], predicted: Sequence[Row], *, ordered: bool) -> bool:
    left, right = map(_sorted_row, gold), map(_sorted_row, predicted)
    if ordered:
        return all(one == other for one, other in zip(left, right, strict=True))
    return set(left) == set(right)


def _same_up_to_columns(gold: Sequence[Row], predicted: Sequence[Row]) -> bool:
    """Whether some permutation of `predicted`'s columns gives the same multiset of rows as `gold`."""
    wanted = Counter(gold)
    found = Counter(predicted)
    if wanted == found:
        return True
    width = len(gold[0])
    if width == 1 or sorted(wanted.values()) != sorted(found.values()):
        return False
    left = _columns_by_content(gold)
    right = _columns_by_content(predicted)
    if {content: len(columns) for content, columns in left.items()} != {
        content: len(columns) for content, columns in right.items()
    }:
        return False
    if len(left) == width:
        source = {left[content][0]: right[content][0] for content in left}
        order = [source[column] for column in range(width)]
        return Counter(tuple(row[column] for column in order) for row in predicted) == wanted
    from merit_sql.eval.columns import equal_up_to_columns

    return equal_up_to_columns(gold, predicted)


def _columns_by_content(rows: Sequence[Row]) -> dict[frozenset[tuple[Cell, int]], list[int]]:
    """Column indices grouped by the multiset of values in the column."""
    grouped: dict[frozenset[tuple[Cell, int]], list[int]] = {}
    for index, column in enumerate(zip(*rows, strict=True)):
        grouped.setdefault(frozenset(Counter(column).items()), []).append(index)
    return grouped
