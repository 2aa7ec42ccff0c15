"""Results are compared as the official evaluators do, exactly, and in bounded time."""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merit_sql.domain.execution import Cell, Row
from merit_sql.eval.columns import equal_up_to_columns
from merit_sql.eval.comparison import same_denotation, same_set

CELLS = st.sampled_from(
    [None, 0, 1, 1.0, 10, -0.0, 0.5, "1", "", "a", "None", b"a", b"", 2**60, float(2**60)]
)


def reference(gold: list[Row], predicted: list[Row], *, ordered: bool) -> bool:
    """The official comparison as evaluators.md describes it, by trying every permutation of the columns."""
    if not gold and not predicted:
        return True
    if len(gold) != len(predicted) or len(gold[0]) != len(predicted[0]):
        return False

    def by_text(row: Row) -> Row:
        return tuple(sorted(row, key=lambda cell: f"{cell}{type(cell)}"))

    left, right = [by_text(row) for row in gold], [by_text(row) for row in predicted]
    if (left != right) if ordered else (set(left) != set(right)):
        return False
    for order in permutations(range(len(gold[0]))):
        moved = [tuple(row[column] for column in order) for row in predicted]
        if (moved == gold) if ordered else (Counter(moved) == Counter(gold)):
            return True
    return False


@st.composite
def table_pairs(draw: st.DrawFn, cells: st.SearchStrategy[Cell] = CELLS) -> tuple[list[Row], list[Row]]:
    """Two tables of up to 4 columns and 6 rows: unrelated, or one a shuffled and often damaged other."""
    width = draw(st.integers(1, 4))
    rows = st.lists(st.tuples(*[cells] * width), max_size=6)
    gold = draw(rows)
    if draw(st.booleans()):
        return gold, draw(rows)
    order = draw(st.permutations(range(width)))
    predicted = [tuple(row[column] for column in order) for row in draw(st.permutations(gold))]
    for _ in range(draw(st.integers(0, 2))):
        if predicted:
            at = draw(st.integers(0, len(predicted) - 1))
            column = draw(st.integers(0, width - 1))
            row = predicted[at]
            predicted[at] = (*row[:column], draw(cells), *row[column + 1 :])
    return gold, predicted


@settings(max_examples=1500, deadline=None)
@given(table_pairs(), st.booleans())
def test_any_two_small_tables_compare_as_the_official_algorithm_says(
    tables: tuple[list[Row], list[Row]], ordered: bool
) -> None:
    gold, predicted = tables
    assert same_denotation(gold, predicted, ordered=ordered) == reference(gold, predicted, ordered=ordered)


@settings(max_examples=500, deadline=None)
@given(table_pairs(st.integers(0, 1)))
def test_the_search_over_columns_is_exact_where_every_column_looks_alike(
    tables: tuple[list[Row], list[Row]],
) -> None:
    gold, predicted = tables
    if not gold or len(gold) != len(predicted):
        return
    expected = any(
        Counter(tuple(row[column] for column in order) for row in predicted) == Counter(gold)
        for order in permutations(range(len(gold[0])))
    )
    assert equal_up_to_columns(gold, predicted) == expected


@pytest.mark.parametrize(
    ("gold", "predicted", "ordered", "equal"),
    [
        pytest.param([], [], False, True, id="both empty"),
        pytest.param([(1,)], [], False, False, id="one empty"),
        pytest.param([(1,)], [(1, 1)], False, False, id="other column count"),
        pytest.param([(1,), (1,)], [(1,)], False, False, id="other row count"),
        pytest.param([(1,), (2,)], [(2,), (1,)], False, True, id="row order does not count"),
        pytest.param([(1,), (2,)], [(2,), (1,)], True, False, id="row order counts"),
        pytest.param([(1, "a"), (2, "b")], [("a", 1), ("b", 2)], True, True, id="columns permuted, ordered"),
        pytest.param([(1, 2), (3, 4)], [(2, 1), (3, 4)], False, False, id="columns permuted in one row only"),
        pytest.param([(1,), (1,), (2,)], [(1,), (2,), (2,)], False, False, id="multiset, not set"),
        pytest.param([(1,)], [(1.0,)], False, True, id="an integer equals the same real"),
        pytest.param([(1,)], [("1",)], False, False, id="a number is no text"),
        pytest.param([("a",)], [(b"a",)], False, False, id="text is no blob"),
        pytest.param([(None,)], [(None,)], False, True, id="NULL equals NULL"),
        pytest.param([(0.1 + 0.2,)], [(0.3,)], False, False, id="no tolerance"),
        pytest.param([(1.0, 10)], [(1, 10)], False, False, id="the type text parts what is equal"),
        pytest.param([(1.0, 10)], [(1, 10)], True, False, id="the type text parts what is equal, ordered"),
        pytest.param([(1.0, 2)], [(1, 2)], False, True, id="the type text does not always"),
        pytest.param([(2**53 + 1,)], [(2.0**53,)], False, False, id="large integers are exact"),
    ],
)
def test_the_rules_of_the_comparison(
    gold: list[Row], predicted: list[Row], ordered: bool, equal: bool
) -> None:
    assert same_denotation(gold, predicted, ordered=ordered) is equal
    assert reference(gold, predicted, ordered=ordered) is equal


@pytest.mark.parametrize(
    ("gold", "predicted", "equal"),
    [
        ([], [], True),
        ([(1,), (1,)], [(1,)], True),
        ([(1,), (2,)], [(2,), (1,)], True),
        ([(1, 2)], [(2, 1)], False),
        ([(1,)], [(1, 1)], False),
        ([(1,)], [(1.0,)], True),
        ([(1,)], [], False),
    ],
)
def test_bird_compares_sets_of_rows(gold: list[Row], predicted: list[Row], equal: bool) -> None:
    assert same_set(gold, predicted) is equal


def shuffled(rows: Sequence[Row], seed: int) -> list[Row]:
    """The same table with rows and columns in another order."""
    chance = random.Random(seed)
    order = list(range(len(rows[0])))
    chance.shuffle(order)
    moved = [tuple(row[column] for column in order) for row in rows]
    chance.shuffle(moved)
    return moved


def one_cell_swapped(rows: Sequence[Row]) -> list[Row]:
    """Two rows exchange a cell in which they differ: each column keeps its values."""
    damaged = list(rows)
    first = damaged[0]
    other = next(index for index, row in enumerate(damaged) if row[0] != first[0] and row[1:] != first[1:])
    damaged[0], damaged[other] = (damaged[other][0], *first[1:]), (first[0], *damaged[other][1:])
    return damaged


def random_columns_of_one_multiset() -> list[Row]:
    chance = random.Random(1)
    values = [index % 7 for index in range(10_000)]
    columns = [chance.sample(values, len(values)) for _ in range(12)]
    return list(zip(*columns, strict=True))


def binary_columns() -> list[Row]:
    """All columns hold as many zeros as ones, and so does every row."""
    chance = random.Random(2)
    half = [0] * 6 + [1] * 6
    halves = [tuple(chance.sample(half, 12)) for _ in range(5_000)]
    return [*halves, *(tuple(1 - int(cell) for cell in row) for row in halves)]


def all_bit_patterns() -> list[Row]:
    return [*product((0, 1), repeat=12), *product((0, 1), repeat=12)]


def cyclic_squares() -> list[Row]:
    """833 Latin squares with symbols of their own: no column can be told from another."""
    return [
        tuple(100 * block + (shift + column) % 12 for column in range(12))
        for block in range(833)
        for shift in range(12)
    ]


def affine_blocks() -> list[Row]:
    """The maps x -> ax + b modulo 11, 91 times with symbols of their own: no two columns betray a third."""
    return [
        tuple(100 * block + (factor * column + shift) % 11 for column in range(11))
        for block in range(91)
        for factor in range(1, 11)
        for shift in range(11)
    ]


def paired_blocks() -> list[Row]:
    """Six pairs of columns, the two of each pair exchanged in half of its rows."""
    chance = random.Random(3)
    rows: list[Row] = []
    for _ in range(5_000):
        pairs = [(chance.randrange(50), chance.randrange(50)) for _ in range(6)]
        rows.append(tuple(cell for pair in pairs for cell in pair))
        rows.append(tuple(cell for pair in pairs for cell in reversed(pair)))
    return rows


def ring(nodes: Sequence[int], block: int) -> list[Row]:
    """The edges of a ring as rows: a label in the two columns that an edge joins, else 0."""
    edges = zip(nodes, (*nodes[1:], nodes[0]), strict=True)
    return [tuple(block if column in edge else 0 for column in range(12)) for edge in edges]


def rings(*sizes: int) -> list[Row]:
    """Many copies of a graph on 12 columns in which every column has two neighbours."""
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    return [
        row
        for block in range(1, 834)
        for start, size in zip(starts, sizes, strict=True)
        for row in ring(range(start, start + size), block)
    ]


WIDE = [
    random_columns_of_one_multiset,
    binary_columns,
    all_bit_patterns,
    cyclic_squares,
    affine_blocks,
    paired_blocks,
]


def timed(gold: list[Row], predicted: list[Row], *, ordered: bool) -> tuple[bool, float]:
    """The verdict, and the processor seconds that it took."""
    started = time.process_time()
    return same_denotation(gold, predicted, ordered=ordered), time.process_time() - started


@pytest.mark.parametrize("build", WIDE)
def test_twelve_shuffled_columns_are_recognised_within_a_second(build: Callable[[], list[Row]]) -> None:
    gold = build()
    equal, seconds = timed(gold, shuffled(gold, 7), ordered=False)
    assert equal
    assert seconds < 1


@pytest.mark.parametrize("build", WIDE)
def test_twelve_columns_with_two_cells_exchanged_differ_within_a_second(
    build: Callable[[], list[Row]],
) -> None:
    gold = build()
    equal, seconds = timed(gold, shuffled(one_cell_swapped(gold), 7), ordered=False)
    assert not equal
    assert seconds < 1


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        pytest.param(rings(12), rings(6, 6), False, id="one ring is not two"),
        pytest.param(rings(6, 6), rings(3, 3, 6), False, id="half of it differs"),
        pytest.param(rings(4, 4, 4), rings(4, 4, 4), True, id="the same"),
        pytest.param(rings(3, 3, 3, 3), rings(4, 4, 4), False, id="four rings are not three"),
    ],
)
def test_structures_that_no_single_column_betrays_are_told_apart_within_a_second(
    gold: list[Row], predicted: list[Row], expected: bool
) -> None:
    equal, seconds = timed(gold, shuffled(predicted, 5), ordered=False)
    assert equal is expected
    assert seconds < 1


def test_ordered_wide_results_compare_by_whole_columns() -> None:
    gold = random_columns_of_one_multiset()
    moved = [tuple(reversed(row)) for row in gold]
    assert timed(gold, moved, ordered=True)[0]
    assert timed(gold, moved, ordered=True)[1] < 1
    assert not same_denotation(gold, [*moved[1:], moved[0]], ordered=True)


def test_hundreds_of_equal_columns_need_no_deep_search() -> None:
    gold: list[Row] = [tuple([row] * 1_500) for row in range(3)]
    assert same_denotation(gold, gold[::-1], ordered=False)
    pairs: list[Row] = [tuple([0, 1] * 600), tuple([1, 0] * 600), tuple([2, 3] * 600)]
    equal, seconds = timed(pairs, shuffled(pairs, 3), ordered=False)
    assert equal
    assert seconds < 1
