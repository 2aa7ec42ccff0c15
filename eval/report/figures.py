"""The figures of a report: each method over its orders, and the differences that pairs of methods show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from merit_sql.domain.episode import EpisodeRecord
from merit_sql.eval import statistics
from merit_sql.eval.breakdowns import Group
from merit_sql.eval.metrics import Metrics
from merit_sql.eval.report.sources import Source
from merit_sql.eval.report.tables import Spread
from merit_sql.eval.runs import LoadedStream
from merit_sql.eval.statistics import Estimate, McNemar, Outcomes

SEED = 0
"""Of every bootstrap in a report, so that a report of the same runs has the same bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One method of one source.

    `streams` are its finished ones, or where none is finished, all: then `partial` is true. `metrics` are
    theirs, `left_out` the streams that are not finished beside others that are. `interval` is that of the
    strict accuracy, over the questions that all `streams` hold.
    """

    source: Source
    method: str
    remembers: bool
    streams: tuple[LoadedStream, ...]
    metrics: tuple[Metrics, ...]
    left_out: tuple[LoadedStream, ...]
    partial: bool
    interval: Estimate | None

    @property
    def name(self) -> str:
        """The method's name, with its source's label where there are several."""
        return f"{self.method} · {self.source.label}" if self.source.label else self.method

    @property
    def orders(self) -> tuple[int, ...]:
        """The orders of `streams`."""
        return tuple(stream.order for stream in self.streams)

    def spread(
        self, figure: Callable[[Metrics], float | None], *, decimals: int = 2, partial: bool = False
    ) -> Spread | None:
        """Mean and sample standard deviation of a figure over the orders; None where one has none."""
        return spread([figure(one) for one in self.metrics], decimals=decimals, partial=partial)

    def mean(self, figure: Callable[[Metrics], float | None]) -> float | None:
        """Mean of a figure over the orders."""
        found = self.spread(figure)
        return None if found is None else found.mean

    def groups(self, of: Callable[[Sequence[EpisodeRecord]], list[Group]]) -> list[list[Group]]:
        """A breakdown of each stream."""
        return [of(stream.records) for stream in self.streams]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The paired difference `ours` − `theirs` in strict accuracy, on the questions that both finished.

    `orders` are those compared; `stands` names the method whose single order stands for each of them.
    `by_query` resamples questions, `by_database` whole databases. `tests` holds McNemar's test for each
    order, `adjusted` its p-values after Holm's correction over the comparisons of that order.
    """

    ours: Arm
    theirs: Arm
    orders: tuple[int, ...]
    questions: int
    stands: str | None
    by_query: Estimate
    by_database: Estimate
    tests: tuple[McNemar, ...]
    adjusted: tuple[float, ...]

    @property
    def is_certain(self) -> bool:
        """Whether the 95 % interval over questions leaves out 0."""
        interval = self.by_query.interval
        return interval is not None and (interval[0] > 0 or interval[1] < 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One source with its figures: the arms, the reference among them, and its differences to the others."""

    source: Source
    arms: tuple[Arm, ...]
    reference: Arm
    comparisons: tuple[Comparison, ...]


def spread(values: Sequence[float | None], *, decimals: int = 2, partial: bool = False) -> Spread | None:
    """Mean and sample standard deviation; None where a value is missing or there is none."""
    known = [float(value) for value in values if value is not None]
    mean = statistics.mean(known)
    if mean is None or len(known) < len(values):
        return None
    return Spread(mean=mean, deviation=statistics.sample_sd(known), decimals=decimals, partial=partial)


def percentage(share: float | None) -> float | None:
    """A share × 100."""
    return None if share is None else 100 * share


def arms_of(source: Source) -> tuple[Arm, ...]:
    """The methods of a source that have a stream, in its order."""
    methods = dict.fromkeys(stream.method for stream in source.streams)
    return tuple(_arm(source, method) for method in methods)


def _arm(source: Source, method: str) -> Arm:
    streams = [stream for stream in source.streams if stream.method == method]
    finished = [stream for stream in streams if source.is_finished(stream)]
    used = finished or streams
    common = _common_questions(used)
    settings = source.identity["methods"].get(method)
    return Arm(
        source=source,
        method=method,
        remembers=isinstance(settings, dict) and settings.get("policy") is not None,
        streams=tuple(used),
        metrics=tuple(stream.metrics for stream in used),
        left_out=tuple(stream for stream in streams if finished and not source.is_finished(stream)),
        partial=not finished,
        interval=statistics.accuracy_bootstrap(_outcomes(method, used, common), seed=SEED),
    )


def reference_of(arms: Sequence[Arm], asked: str) -> Arm:
    """The arm that the others are compared with: the method `asked` for, or else the most accurate one."""
    named = [arm for arm in arms if arm.method == asked]
    return (
        named[0] if named else max(arms, key=lambda arm: arm.mean(lambda one: one.execution_accuracy) or 0.0)
    )


def compare(reference: Arm, others: Sequence[Arm]) -> tuple[Comparison, ...]:
    """The reference against each of `others`, of its source; pairs without a common question are left out."""
    drafts = [found for other in others if (found := _compared(reference, other)) is not None]
    adjusted: dict[tuple[int, int], float] = {}
    for order in {test.order for draft in drafts for test in draft.tests}:
        family = [
            (index, test.p_value)
            for index, draft in enumerate(drafts)
            for test in draft.tests
            if test.order == order
        ]
        for (index, _), p_value in zip(family, statistics.holm([p for _, p in family]), strict=True):
            adjusted[index, order] = p_value
    return tuple(
        replace(draft, adjusted=tuple(adjusted[index, test.order] for test in draft.tests))
        for index, draft in enumerate(drafts)
    )


def part_of(source: Source, reference: str) -> Part:
    """The figures of a source; the others are compared with the method `reference`, if it is there."""
    arms = arms_of(source)
    chosen = reference_of(arms, reference)
    others = [arm for arm in arms if arm is not chosen]
    return Part(source=source, arms=arms, reference=chosen, comparisons=compare(chosen, others))


def _compared(ours: Arm, theirs: Arm) -> Comparison | None:
    mine, other, stands = _paired_streams(ours, theirs)
    common = _common_questions([*mine, *other])
    if not common:
        return None
    pair = (_outcomes(ours.method, mine, common), _outcomes(theirs.method, other, common))
    by_query = statistics.paired_bootstrap(*pair, seed=SEED)
    by_database = statistics.paired_bootstrap(*pair, seed=SEED, cluster="database")
    if by_query is None or by_database is None:
        return None
    tests = statistics.mcnemar(*pair)
    return Comparison(
        ours=ours,
        theirs=theirs,
        orders=tuple(test.order for test in tests),
        questions=len(common),
        stands=stands,
        by_query=by_query,
        by_database=by_database,
        tests=tuple(tests),
        adjusted=(),
    )


def _paired_streams(
    ours: Arm, theirs: Arm
) -> tuple[Sequence[LoadedStream], Sequence[LoadedStream], str | None]:
    """The streams to compare: order by order, or one for all where its method has no use for the order."""
    for single, several in ((ours, theirs), (theirs, ours)):
        if len(single.streams) == 1 and len(several.streams) > 1 and not single.remembers:
            return ours.streams, theirs.streams, single.method
    shared = set(ours.orders) & set(theirs.orders)
    mine = [stream for stream in ours.streams if stream.order in shared]
    other = [stream for stream in theirs.streams if stream.order in shared]
    return mine, other, None


def _common_questions(streams: Sequence[LoadedStream]) -> set[str]:
    held = [{record.query_id for record in stream.records} for stream in streams]
    return set.intersection(*held) if held else set()


def _outcomes(method: str, streams: Sequence[LoadedStream], questions: set[str]) -> Outcomes:
    return statistics.outcomes(
        method,
        {
            stream.order: [record for record in stream.records if record.query_id in questions]
            for stream in streams
        },
    )
