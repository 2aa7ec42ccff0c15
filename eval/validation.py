"""The failure classifier against people: which failures to label, and how far the labels agree with it."""

import dataclasses
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from merit_sql.domain.errors import DataError
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.status import Opinion, Status
from merit_sql.eval.runs import LoadedRun
from merit_sql.nodes.failures import classify_failure

LABELLED_TWICE = 50
"""Rows that both annotators label, so that their agreement can be measured."""

LEAST_OF_A_TYPE = 10
"""Rows that each failure type gets, where it has so many, before the rest is shared out by size."""

Pair = tuple[FailureKind, FailureKind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An initial prediction that was refuted: what an annotator sees of it."""

    query_id: str
    database_id: str
    question: str
    sql: str
    status: Status
    error: str

    @property
    def predicted(self) -> FailureKind:
        """The classifier's type, which an annotator does not see."""
        return classify_failure(self.status, self.error).kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """One row of a sheet that came back; None where an annotator left the cell empty."""

    query_id: str
    predicted: FailureKind
    first: FailureKind | None
    second: FailureKind | None

    @property
    def label(self) -> FailureKind | None:
        """The reference label: the first annotator's, or the second's where the first gave none."""
        return self.first or self.second


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Accuracy and macro-F1 of the classifier, and the share of failures that it gave a type at all.

    All in [0, 1]. Macro-F1 is the unweighted mean of the F1 of the types that a label or a prediction
    names. `coverage` is the share that the classifier did not call Unknown.
    """

    accuracy: float
    macro_f1: float
    coverage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Kappa:
    """Cohen's kappa of two annotators, and the number of rows that both labelled.

    `value` is None where it is undefined: no such rows, or both gave one and the same type throughout.
    """

    value: float | None
    agreed: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What a labelled sheet says of the classifier.

    `confusion` counts rows by (label, prediction). `weighted` is None without population counts;
    `unlabelled_types` are the types of the population that no label stands for, which the weights leave out.
    """

    drawn: int
    labelled: int
    plain: Agreement
    weighted: Agreement | None
    unlabelled_types: tuple[FailureKind, ...]
    confusion: Mapping[Pair, int]
    kappa: Kappa


def initial_failures(run: LoadedRun) -> list[Failure]:
    """The refuted initial predictions of a run, one a question whatever number of streams share it."""
    found: dict[str, Failure] = {}
    texts = {str(question.id): question.question for question in run.questions}
    for stream in run.streams:
        for record in stream.records:
            first = record.attempts[0]
            if first["opinion"] != Opinion.REFUTED or record.query_id in found:
                continue
            if record.query_id not in texts:
                raise DataError(f"{run.folder}: holds no question {record.query_id}")
            found[record.query_id] = Failure(
                query_id=record.query_id,
                database_id=record.database_id,
                question=texts[record.query_id],
                sql=first["sql"],
                status=Status(first["status"]),
                error=(first["error"] or "").strip(),
            )
    return [found[query] for query in sorted(found)]


def population_of(failures: Sequence[Failure]) -> dict[FailureKind, int]:
    """How many failures there are of each type; types without any are left out."""
    counts = Counter(failure.predicted for failure in failures)
    return {kind: counts[kind] for kind in FailureKind if counts[kind]}


def allocate(population: Mapping[FailureKind, int], size: int) -> dict[FailureKind, int]:
    """How many rows of each type make a stratified sample of `size`; all there are where `size` is more.

    Every type first gets the same number, `LEAST_OF_A_TYPE` or as near to it as `size` allows, or all it
    has; the rest goes by what each has left, with largest remainders.
    """
    size = min(size, sum(population.values()))
    least = next(
        floor
        for floor in range(LEAST_OF_A_TYPE, -1, -1)
        if sum(min(count, floor) for count in population.values()) <= size
    )
    rows = {kind: min(count, least) for kind, count in population.items()}
    left = {kind: count - rows[kind] for kind, count in population.items()}
    rest, whole = size - sum(rows.values()), sum(left.values())
    if not rest:
        return rows
    for kind in population:
        rows[kind] += rest * left[kind] // whole
    missing = size - sum(rows.values())
    by_remainder = sorted(population, key=lambda kind: -(rest * left[kind] % whole))
    for kind in by_remainder[:missing]:
        rows[kind] += 1
    return rows


def draw(failures: Sequence[Failure], size: int, seed: int) -> list[Failure]:
    """A random sample stratified by predicted type, in an order that says nothing of the type."""
    generator = random.Random(seed)  # noqa: S311 - a repeatable draw, not a secret
    chosen: list[Failure] = []
    for kind, rows in allocate(population_of(failures), size).items():
        stratum = [failure for failure in failures if failure.predicted is kind]
        chosen.extend(generator.sample(stratum, rows))
    generator.shuffle(chosen)
    return chosen


def validate(
    rows: Sequence[Labelled], *, drawn: int, population: Mapping[FailureKind, int] | None
) -> Validation:
    """Score a labelled sheet of `drawn` rows; raises `DataError` where no row has a label.

    With population counts N_h by predicted type, a labelled row of type h weighs N_h / n_h, n_h being the
    labelled rows of that type (post-stratification: W. Cochran, *Sampling Techniques*, 1977, §5A.9), so
    that a rare type counts as often as it occurs in the run. Raises `DataError` where the population lacks
    a type that the sheet has.
    """
    pairs = [(row.label, row.predicted) for row in rows if row.label is not None]
    if not pairs:
        raise DataError(
            "the sheet holds no label yet: fill in annotator_1, and annotator_2 where both is yes"
        )
    confusion = Counter(pairs)
    weighted, unlabelled = _weighted(confusion, population)
    return Validation(
        drawn=drawn,
        labelled=len(pairs),
        plain=agreement(confusion),
        weighted=weighted,
        unlabelled_types=unlabelled,
        confusion=dict(confusion),
        kappa=cohens_kappa(
            [(row.first, row.second) for row in rows if row.first is not None and row.second is not None]
        ),
    )


def agreement(confusion: Mapping[Pair, float]) -> Agreement:
    """Accuracy, macro-F1 and coverage from counts, or weights, of (label, prediction).

    F1 of a type is 2·tp / (2·tp + fp + fn). Definitions as scikit-learn's `accuracy_score` and
    `f1_score(average="macro")`. `confusion` must not be empty.
    """
    whole = math.fsum(confusion.values())
    right = {kind: confusion.get((kind, kind), 0.0) for kind in FailureKind}
    labels = {kind: _sum(confusion, 0, kind) for kind in FailureKind}
    predictions = {kind: _sum(confusion, 1, kind) for kind in FailureKind}
    f1 = [
        2 * right[kind] / (labels[kind] + predictions[kind])
        for kind in FailureKind
        if labels[kind] + predictions[kind]
    ]
    return Agreement(
        accuracy=math.fsum(right.values()) / whole,
        macro_f1=math.fsum(f1) / len(f1),
        coverage=1 - predictions[FailureKind.UNKNOWN] / whole,
    )


def cohens_kappa(pairs: Sequence[Pair]) -> Kappa:
    """Cohen's κ = (p_o − p_e) / (1 − p_e) of the labels that two annotators gave the same rows.

    p_o is the share of equal labels, p_e = Σ_k p₁(k)·p₂(k) what their own frequencies alone would give.

    Source: J. Cohen, *Educational and Psychological Measurement* 20 (1960) 37–46.
    """
    n = len(pairs)
    agreed = sum(first is second for first, second in pairs)
    firsts, seconds = Counter(first for first, _ in pairs), Counter(second for _, second in pairs)
    # In whole numbers, times n²: that p_e is exactly 1 can be told.
    by_chance = sum(firsts[kind] * seconds[kind] for kind in FailureKind)
    value = None if by_chance == n * n else (n * agreed - by_chance) / (n * n - by_chance)
    return Kappa(value=value, agreed=agreed, rows=n)


def _weighted(
    confusion: Mapping[Pair, int], population: Mapping[FailureKind, int] | None
) -> tuple[Agreement | None, tuple[FailureKind, ...]]:
    if population is None:
        return None, ()
    labelled = Counter[FailureKind]()
    for (_, predicted), count in confusion.items():
        labelled[predicted] += count
    lacking = sorted(kind for kind, count in labelled.items() if population.get(kind, 0) < count)
    if lacking:
        raise DataError(
            f"the population counts fewer failures of {', '.join(lacking)} than the sheet holds: it is "
            "another run's, or the sheet was edited"
        )
    weights = {pair: count * population[pair[1]] / labelled[pair[1]] for pair, count in confusion.items()}
    unlabelled = tuple(kind for kind in FailureKind if population.get(kind) and not labelled[kind])
    # Every failure of the population has a prediction, labelled or not: its coverage is known exactly.
    unknown = population.get(FailureKind.UNKNOWN, 0) / sum(population.values())
    return dataclasses.replace(agreement(weights), coverage=1 - unknown), unlabelled


def _sum(confusion: Mapping[Pair, float], side: int, kind: FailureKind) -> float:
    return math.fsum(count for pair, count in confusion.items() if pair[side] is kind)
