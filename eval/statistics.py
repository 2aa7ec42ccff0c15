"""How sure a result is: means over orders, cluster bootstraps, McNemar's test and Holm's correction."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from merit_sql.domain.episode import EpisodeRecord
from merit_sql.domain.errors import DataError
from merit_sql.eval.breakdowns import right

RESAMPLES = 10_000
LEVEL = 0.95
CHUNK = 1_000_000
"""Indices that are drawn at a time (8 MB of them), however many questions there are."""

Cluster = Literal["query", "database"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """What one method made of a set of questions.

    `scores` holds, by query id, one score in [0, 1] for each of `orders`; `databases` the database of each
    query. Raises `DataError` where they do not fit together or a score is no number in [0, 1].
    """

    method: str
    orders: tuple[int, ...]
    scores: Mapping[str, tuple[float, ...]]
    databases: Mapping[str, str]

    def __post_init__(self) -> None:
        if not self.orders or len(set(self.orders)) < len(self.orders):
            raise DataError(f"{self.method}: its orders must be one or more different ones: {self.orders}")
        for query, row in self.scores.items():
            if len(row) != len(self.orders):
                raise DataError(
                    f"{self.method}: query {query} has {len(row)} scores for {len(self.orders)} orders"
                )
            if not all(0 <= score <= 1 for score in row):
                raise DataError(f"{self.method}: query {query} has a score outside [0, 1]: {row}")
            if query not in self.databases:
                raise DataError(f"{self.method}: query {query} has no database")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean and its interval, in percentage points.

    `interval` is (low, high) at `level`; None where there are fewer than two clusters to resample.
    """

    value: float
    interval: tuple[float, float] | None
    level: float
    cluster: Cluster
    clusters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """One order's discordant questions, and the two-sided p-value of the exact test on them."""

    order: int
    only_ours: int
    only_theirs: int
    p_value: float


def outcomes(
    method: str,
    streams: Mapping[int, Sequence[EpisodeRecord]],
    *,
    score: Callable[[EpisodeRecord], float] = right,
) -> Outcomes:
    """The outcomes of a method's streams, by order; `score` is the strict verdict at the end by default.

    Raises `DataError` where two orders do not hold the same questions (compare finished streams only), and
    without any stream.
    """
    if not streams:
        raise DataError(f"{method}: has no stream to take outcomes from")
    rows = {
        order: {record.query_id: float(score(record)) for record in records}
        for order, records in streams.items()
    }
    first, *others = rows
    for order in others:
        _same_questions(f"{method}, order {first}", rows[first], f"{method}, order {order}", rows[order])
    return Outcomes(
        method=method,
        orders=tuple(rows),
        scores={query: tuple(row[query] for row in rows.values()) for query in rows[first]},
        databases={record.query_id: record.database_id for record in streams[first]},
    )


def mean(values: Sequence[float]) -> float | None:
    """x̄ = Σx / n; None for no values."""
    return statistics.fmean(values) if values else None


def sample_sd(values: Sequence[float]) -> float | None:
    """Sample standard deviation √(Σ(x − x̄)² / (n − 1)); None for fewer than two values."""
    return statistics.stdev(values) if len(values) > 1 else None


def accuracy_bootstrap(
    ours: Outcomes,
    *,
    seed: int,
    cluster: Cluster = "query",
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Estimate | None:
    """One method's mean score × 100 with a cluster-bootstrap percentile interval; None without questions.

    Resampled as in `paired_bootstrap`, on one arm.
    """
    queries = sorted(ours.scores)
    totals = [sum(ours.scores[query]) for query in queries]
    return _bootstrap(
        queries,
        totals,
        len(ours.orders),
        ours.databases,
        cluster,
        seed=seed,
        resamples=resamples,
        level=level,
    )


def paired_bootstrap(
    ours: Outcomes,
    theirs: Outcomes,
    *,
    seed: int,
    cluster: Cluster = "query",
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Estimate | None:
    """Mean difference ours − theirs in percentage points, with its cluster-bootstrap percentile interval.

    A query's difference is that of its mean scores over the orders, so that a resample takes or leaves all
    its orders in both arms together. A resample draws as many clusters as there are, with replacement:
    queries, or databases with all their queries; its statistic is Σ differences / Σ queries. The interval
    runs from the (1 − level)/2 to the (1 + level)/2 quantile (linear between order statistics) of
    `resamples` statistics, drawn with NumPy's PCG64 seeded by `seed`. A method with a single order gives
    the same answers in each (method.md §5: order matters to memory alone), so it stands for every order of
    the other. None without questions.

    Sources: method.md §5; B. Efron and R. Tibshirani, *An Introduction to the Bootstrap*, 1993, ch. 13
    (percentile interval); A. Davison and D. Hinkley, *Bootstrap Methods and their Application*, 1997, §3.8
    (resampling clusters whole).

    Raises `DataError` where the two hold other questions, or each has several orders and they differ.
    """
    _comparable(ours, theirs)
    scale = math.lcm(len(ours.orders), len(theirs.orders))
    queries = sorted(ours.scores)
    # Whole numbers over a common denominator: right or wrong adds up exactly, and no difference stays 0.
    totals = [
        sum(ours.scores[query]) * (scale // len(ours.orders))
        - sum(theirs.scores[query]) * (scale // len(theirs.orders))
        for query in queries
    ]
    return _bootstrap(
        queries, totals, scale, ours.databases, cluster, seed=seed, resamples=resamples, level=level
    )


def mcnemar(ours: Outcomes, theirs: Outcomes) -> list[McNemar]:
    """McNemar's exact test for each order: are the questions that only one method got split evenly?

    With b questions only ours and c only theirs, p = min(1, 2·P(X ≤ min(b, c))), X ~ Binomial(b + c, ½);
    1 where nothing is discordant. A method with a single order is set against every order of the other.

    Source: Q. McNemar, *Psychometrika* 12 (1947) 153–157, in the exact form of A. Agresti, *Categorical
    Data Analysis*, §10.1.

    Raises `DataError` as `paired_bootstrap` does, and for scores that are neither 0 nor 1.
    """
    _comparable(ours, theirs)
    for arm in (ours, theirs):
        for query, row in arm.scores.items():
            if not set(row) <= {0, 1}:
                raise DataError(
                    f"{arm.method}: query {query} scores {row}; McNemar's test takes right or wrong"
                )
    orders = ours.orders if len(ours.orders) > 1 else theirs.orders
    tests = []
    for order in orders:
        pairs = [(_at(ours, query, order), _at(theirs, query, order)) for query in ours.scores]
        only_ours = sum(a > b for a, b in pairs)
        only_theirs = sum(a < b for a, b in pairs)
        tests.append(
            McNemar(
                order=order,
                only_ours=only_ours,
                only_theirs=only_theirs,
                p_value=exact_mcnemar(only_ours, only_theirs),
            )
        )
    return tests


def exact_mcnemar(only_ours: int, only_theirs: int) -> float:
    """The two-sided exact p-value for two discordant counts: see `mcnemar`."""
    n = only_ours + only_theirs
    term = tail = 1
    for k in range(min(only_ours, only_theirs)):
        term = term * (n - k) // (k + 1)
        tail += term
    return min(1.0, 2 * tail / (1 << n))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given.

    With p₍₁₎ ≤ … ≤ p₍ₘ₎ the i-th becomes the largest of min(1, (m − j + 1)·p₍ⱼ₎) over j ≤ i.

    Source: S. Holm, *Scandinavian Journal of Statistics* 6 (1979) 65–70. Raises `DataError` for a value
    outside [0, 1].
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise DataError(f"p-values lie in [0, 1]: {list(p_values)}")
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def _bootstrap(
    queries: Sequence[str],
    totals: Sequence[float],
    scale: int,
    databases: Mapping[str, str],
    cluster: Cluster,
    *,
    seed: int,
    resamples: int,
    level: float,
) -> Estimate | None:
    if resamples < 1 or not 0 < level < 1:
        raise ValueError(f"resamples must be positive and level in (0, 1): {resamples}, {level}")
    if not queries:
        return None
    names = queries if cluster == "query" else [databases[query] for query in queries]
    index = {name: position for position, name in enumerate(sorted(set(names)))}
    members = [index[name] for name in names]
    sums = np.bincount(members, weights=np.asarray(totals)).astype(np.float64)
    sizes = np.bincount(members).astype(np.float64)
    interval = None
    if len(index) > 1:
        drawn = _resampled(sums, sizes, seed=seed, resamples=resamples)
        low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
        interval = (float(low) * 100 / scale, float(high) * 100 / scale)
    return Estimate(
        value=math.fsum(totals) / len(queries) * 100 / scale,
        interval=interval,
        level=level,
        cluster=cluster,
        clusters=len(index),
    )


def _resampled(
    sums: NDArray[np.float64], sizes: NDArray[np.float64], *, seed: int, resamples: int
) -> NDArray[np.float64]:
    """Σ sums / Σ sizes of each resample of the clusters; shape (resamples,)."""
    generator = np.random.Generator(np.random.PCG64(seed))
    statistic = np.empty(resamples)
    rows = max(1, CHUNK // len(sums))
    for begin in range(0, resamples, rows):
        end = min(begin + rows, resamples)
        chosen = generator.integers(0, len(sums), size=(end - begin, len(sums)))
        statistic[begin:end] = sums[chosen].sum(axis=1) / sizes[chosen].sum(axis=1)
    return statistic


def _comparable(ours: Outcomes, theirs: Outcomes) -> None:
    _same_questions(ours.method, ours.scores, theirs.method, theirs.scores)
    several = len(ours.orders) > 1 and len(theirs.orders) > 1
    if several and set(ours.orders) != set(theirs.orders):
        raise DataError(
            f"{ours.method} has orders {ours.orders} and {theirs.method} {theirs.orders}: compare the same "
            "orders, or a single one with several"
        )
    moved = [query for query in ours.scores if ours.databases[query] != theirs.databases[query]]
    if moved:
        raise DataError(
            f"{ours.method} and {theirs.method} ask {_some(moved)} of different databases: they are not of "
            "one suite"
        )


def _same_questions(one: str, ours: Mapping[str, object], other: str, theirs: Mapping[str, object]) -> None:
    parts = [
        f"{len(only)} only in {name} ({_some(only)})"
        for name, only in ((one, ours.keys() - theirs.keys()), (other, theirs.keys() - ours.keys()))
        if only
    ]
    if parts:
        raise DataError(
            f"{one} and {other} do not hold the same questions: {'; '.join(parts)}; compare streams that "
            "are finished, of the same questions"
        )


def _some(queries: "Sequence[str] | set[str]") -> str:
    ordered = sorted(queries, key=lambda query: (len(query), query))
    return ", ".join(ordered[:10]) + (", …" if len(ordered) > 10 else "")


def _at(arm: Outcomes, query: str, order: int) -> float:
    column = arm.orders.index(order) if len(arm.orders) > 1 else 0
    return arm.scores[query][column]
