"""The classifier against labels: what is drawn, and the agreement, by hand and as scikit-learn has it."""

import json
import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix, f1_score

from merit_sql.domain.episode import AttemptDict, EpisodeRecord
from merit_sql.domain.errors import DataError
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.status import Regime, Status
from merit_sql.eval.datasets import Question
from merit_sql.eval.runs import LoadedRun, LoadedStream
from merit_sql.eval.timings import Timings
from merit_sql.eval.validation import (
    Failure,
    Labelled,
    agreement,
    allocate,
    cohens_kappa,
    draw,
    initial_failures,
    population_of,
    validate,
)

MISMATCH, LINKING, AGGREGATION, FILTER, EXECUTION, SYNTAX, UNKNOWN = FailureKind
KINDS = st.sampled_from(FailureKind)
PAIRS = st.lists(st.tuples(KINDS, KINDS), min_size=1, max_size=60)


def failure(number: int, error: str = "") -> Failure:
    return Failure(
        query_id=str(number),
        database_id="d",
        question=f"Question {number}?",
        sql="SELECT 1",
        status=Status.EXECUTION_ERROR if error else Status.DENOTATION_MISMATCH,
        error=error,
    )


def rows(pairs: Sequence[tuple[FailureKind | None, FailureKind]]) -> list[Labelled]:
    """Rows of (label, prediction)."""
    return [
        Labelled(query_id=str(number), predicted=predicted, first=label, second=None)
        for number, (label, predicted) in enumerate(pairs)
    ]


# Ten labelled rows: 8 predicted Result Mismatch (4 of them labelled so, 3 Filter/Value, 1 Aggregation), and
# 2 predicted Schema Linking (both labelled so).
TEN = [
    *[(MISMATCH, MISMATCH)] * 4,
    *[(FILTER, MISMATCH)] * 3,
    (AGGREGATION, MISMATCH),
    *[(LINKING, LINKING)] * 2,
]


def test_plain_agreement_of_ten_rows() -> None:
    # Right: 6 of 10. F1: Result Mismatch 2*4 / (4 + 8), Schema Linking 1, Filter/Value 0, Aggregation 0.
    result = validate(rows(TEN), drawn=12, population=None)
    assert (result.drawn, result.labelled, result.weighted) == (12, 10, None)
    assert result.plain.accuracy == pytest.approx(0.6)
    assert result.plain.macro_f1 == pytest.approx((2 / 3 + 1) / 4)
    assert result.plain.coverage == 1
    assert result.confusion == {
        (MISMATCH, MISMATCH): 4,
        (FILTER, MISMATCH): 3,
        (AGGREGATION, MISMATCH): 1,
        (LINKING, LINKING): 2,
    }


def test_weights_bring_back_the_population() -> None:
    # 96 Result Mismatches behind 8 rows weigh 12 each, 4 Schema Linkings behind 2 rows 2 each.
    # Accuracy (4 * 12 + 2 * 2) / 100; F1 of Result Mismatch 2*48 / (48 + 96), of Schema Linking 1.
    result = validate(rows(TEN), drawn=10, population={MISMATCH: 96, LINKING: 4})
    assert result.weighted is not None and result.unlabelled_types == ()
    assert result.weighted.accuracy == pytest.approx(0.52)
    assert result.weighted.macro_f1 == pytest.approx((2 / 3 + 1) / 4)
    assert result.weighted.coverage == 1


def test_macro_f1_changes_with_the_weights() -> None:
    # Three rows predicted Syntax, one of them labelled Execution; one predicted Execution, labelled so.
    # Plain F1: Syntax 2*2 / (2 + 3), Execution 2*1 / (2 + 1). With 3 and 7 in the population the row of
    # Execution weighs 7: Execution 2*7 / (8 + 7).
    result = validate(
        rows([(SYNTAX, SYNTAX), (SYNTAX, SYNTAX), (EXECUTION, SYNTAX), (EXECUTION, EXECUTION)]),
        drawn=4,
        population={SYNTAX: 3, EXECUTION: 7},
    )
    assert result.weighted is not None
    assert result.plain.macro_f1 == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert result.weighted.macro_f1 == pytest.approx((4 / 5 + 14 / 15) / 2)
    assert result.weighted.accuracy == pytest.approx(0.9)


def test_types_without_a_label_are_named_and_coverage_is_the_populations() -> None:
    # One of four labelled rows is Unknown; in the population 10 of 40 are, and nobody labelled a Syntax.
    result = validate(
        rows([(LINKING, LINKING)] * 3 + [(SYNTAX, UNKNOWN), (None, SYNTAX)]),
        drawn=5,
        population={LINKING: 20, UNKNOWN: 10, SYNTAX: 10},
    )
    assert result.labelled == 4 and result.plain.coverage == 0.75
    assert result.weighted is not None and result.weighted.coverage == 0.75
    assert result.unlabelled_types == (SYNTAX,)
    assert result.weighted.accuracy == pytest.approx(20 / 30)


def test_a_sheet_without_labels_and_a_foreign_population_are_refused() -> None:
    with pytest.raises(DataError, match="no label yet"):
        validate(rows([(None, SYNTAX)]), drawn=1, population=None)
    with pytest.raises(DataError, match="fewer failures of Schema Linking"):
        validate(rows(TEN), drawn=10, population={MISMATCH: 96, LINKING: 1})


@settings(deadline=None, max_examples=60)
@given(PAIRS, st.lists(st.integers(1, 9), min_size=7, max_size=7))
def test_agreement_is_scikit_learns(pairs: list[tuple[FailureKind, FailureKind]], factors: list[int]) -> None:
    labels, predictions = [str(label) for label, _ in pairs], [str(predicted) for _, predicted in pairs]
    labelled = Counter(predicted for _, predicted in pairs)
    # Each row of a predicted type stands for `factor` failures, so the population holds that many times n.
    factor = dict(zip(FailureKind, factors, strict=True))
    population = {kind: count * factor[kind] for kind, count in labelled.items()}
    result = validate(rows(pairs), drawn=len(pairs), population=population)
    assert result.weighted is not None
    for ours, weights in ((result.plain, None), (result.weighted, [factor[kind] for _, kind in pairs])):
        assert ours.accuracy == pytest.approx(accuracy_score(labels, predictions, sample_weight=weights))
        assert ours.macro_f1 == pytest.approx(
            f1_score(labels, predictions, average="macro", sample_weight=weights)
        )
        whole = sum(weights or [1] * len(pairs))
        unknown = sum(
            w for w, p in zip(weights or [1] * len(pairs), predictions, strict=True) if p == UNKNOWN
        )
        assert ours.coverage == pytest.approx(1 - unknown / whole)
    expected = confusion_matrix(labels, predictions, labels=[str(kind) for kind in FailureKind]).tolist()
    ours_matrix = [[result.confusion.get((row, column), 0) for column in FailureKind] for row in FailureKind]
    assert ours_matrix == expected


def test_kappa_of_ten_rows() -> None:
    # Both say A in 5 and B in 3, and differ in 2: p_o = 0.8; 6 A and 4 B against 6 A and 4 B: p_e = 0.52.
    pairs = [(SYNTAX, SYNTAX)] * 5 + [(LINKING, LINKING)] * 3 + [(SYNTAX, LINKING), (LINKING, SYNTAX)]
    kappa = cohens_kappa(pairs)
    assert kappa.value == pytest.approx((0.8 - 0.52) / 0.48)
    assert (kappa.agreed, kappa.rows) == (8, 10)


def test_kappa_is_undefined_without_rows_and_for_a_single_type() -> None:
    assert cohens_kappa([]).value is None and cohens_kappa([]).rows == 0
    assert cohens_kappa([(SYNTAX, SYNTAX)] * 3).value is None
    assert cohens_kappa([(SYNTAX, LINKING)] * 3).value == 0


@settings(deadline=None, max_examples=60)
@given(PAIRS)
def test_kappa_is_scikit_learns(pairs: list[tuple[FailureKind, FailureKind]]) -> None:
    kappa = cohens_kappa(pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns where kappa is undefined, and gives nan
        reference = float(cohen_kappa_score([str(a) for a, _ in pairs], [str(b) for _, b in pairs]))
    assert kappa.value == pytest.approx(reference) if kappa.value is not None else math.isnan(reference)


def test_kappa_rests_on_the_rows_of_both() -> None:
    sheet = [
        Labelled(query_id="1", predicted=SYNTAX, first=SYNTAX, second=SYNTAX),
        Labelled(query_id="2", predicted=SYNTAX, first=LINKING, second=SYNTAX),
        Labelled(query_id="3", predicted=SYNTAX, first=SYNTAX, second=None),
        Labelled(query_id="4", predicted=LINKING, first=None, second=LINKING),
    ]
    result = validate(sheet, drawn=4, population=None)
    assert (result.kappa.rows, result.kappa.agreed) == (2, 1)
    # The first annotator's label counts, and the second's where there is none: 3 of 4 agree.
    assert (result.labelled, result.plain.accuracy) == (4, 0.75)


def test_agreement_takes_weights_as_they_are() -> None:
    assert agreement({(SYNTAX, SYNTAX): 0.5, (LINKING, UNKNOWN): 1.5}).accuracy == 0.25
    assert agreement({(SYNTAX, SYNTAX): 0.5, (LINKING, UNKNOWN): 1.5}).coverage == 0.25


def test_rare_types_get_ten_and_the_rest_goes_by_size() -> None:
    # 10 + 10 + 4 first, 126 left for 350 and 40 more: 126 * 350 / 390 = 113.08, 126 * 40 / 390 = 12.92.
    population = {MISMATCH: 360, LINKING: 50, UNKNOWN: 4}
    assert allocate(population, 150) == {MISMATCH: 10 + 113, LINKING: 10 + 13, UNKNOWN: 4}
    assert allocate(population, 1000) == population
    # Four rows for three types: one each, and one more for the largest.
    assert allocate(population, 4) == {MISMATCH: 2, LINKING: 1, UNKNOWN: 1}
    assert allocate(population, 2) == {MISMATCH: 2, LINKING: 0, UNKNOWN: 0}
    assert allocate({}, 5) == {}


@given(st.dictionaries(KINDS, st.integers(1, 500)), st.integers(1, 900))
def test_an_allocation_has_the_size_and_no_more_than_there_is(
    population: dict[FailureKind, int], size: int
) -> None:
    allocated = allocate(population, size)
    assert sum(allocated.values()) == min(size, sum(population.values()))
    assert all(0 <= allocated[kind] <= count for kind, count in population.items())
    if size >= 70:
        assert all(allocated[kind] >= min(10, count) for kind, count in population.items())


def test_a_draw_repeats_by_its_seed_and_mixes_the_types() -> None:
    failures = [failure(n) for n in range(300)] + [failure(n, "no such table: x") for n in range(300, 400)]
    sample = draw(failures, 150, seed=7)
    assert sample == draw(failures, 150, seed=7) != draw(failures, 150, seed=8)
    assert len({one.query_id for one in sample}) == 150
    # 10 each, and 130 over 290 and 90: 99.2 and 30.8.
    assert population_of(sample) == {MISMATCH: 109, LINKING: 41}
    # Of the first fifty rows, for both annotators, some are of either type.
    assert set(population_of(sample[:50])) == {MISMATCH, LINKING}


def stream(method: str, records: Sequence[EpisodeRecord]) -> LoadedStream:
    return LoadedStream(
        method=method,
        order=0,
        records=tuple(records),
        observations=tuple(None for _ in records),
        initial_usage=tuple(None for _ in records),
        timings=Timings(),
    )


def test_failures_of_a_run_are_one_a_question(attempt: Callable[..., AttemptDict]) -> None:
    def record(query: str, *attempts: AttemptDict) -> EpisodeRecord:
        return EpisodeRecord(
            run="r",
            method="m",
            regime=Regime.DENOTATION_CONFIRMED,
            query_id=query,
            database_id="d",
            position=0,
            status=Status.CORRECT,
            confirmed_by=None,
            sql="",
            attempts=list(attempts),
            reflections=[],
            memory_ids=[],
        )

    right = attempt(0, "A", status="CORRECT", opinion="confirmed")
    broken = attempt(0, "B", status="EXECUTION_ERROR", error=" no such column: x ")
    wrong = attempt(0, "C")
    # A later attempt is no initial failure, and a query that ran and nobody judged is none either.
    unjudged = attempt(0, "D", status="EXECUTED", opinion="none")
    run = LoadedRun(
        folder=Path("run"),
        run="r",
        identity={},
        questions=tuple(Question(id=n, database_id="d", question=f"Q{n}") for n in range(4)),
        schemas={},
        streams=(
            stream("a", [record("3", broken, attempt(1, "X")), record("0", right)]),
            stream("b", [record("1", wrong), record("2", unjudged), record("3", broken)]),
        ),
    )
    assert initial_failures(run) == [
        Failure(
            query_id="1",
            database_id="d",
            question="Q1",
            sql="C",
            status=Status.DENOTATION_MISMATCH,
            error="",
        ),
        Failure(
            query_id="3",
            database_id="d",
            question="Q3",
            sql="B",
            status=Status.EXECUTION_ERROR,
            error="no such column: x",
        ),
    ]
    assert json.dumps(population_of(initial_failures(run))) == '{"Result Mismatch": 1, "Schema Linking": 1}'
