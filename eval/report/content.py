"""Tables of how accurate methods are, how sure that is, and where they gain."""

from collections.abc import Callable, Sequence

from merit_sql.domain.episode import EpisodeRecord
from merit_sql.eval.breakdowns import Group, by_database, by_difficulty, by_failure_type
from merit_sql.eval.metrics import Metrics
from merit_sql.eval.report.figures import Arm, Part, percentage, spread
from merit_sql.eval.report.tables import Column, Interval, Number, Table, spread_column, text
from merit_sql.eval.statistics import Estimate


def interval(estimate: Estimate | None) -> Interval | None:
    """The interval of an estimate as a cell."""
    if estimate is None or estimate.interval is None:
        return None
    return Interval(low=estimate.interval[0], high=estimate.interval[1])


def accuracy_table(arms: Sequence[Arm]) -> Table:
    """How often each method is right in the end, and how it got there."""
    columns = (
        text("method"),
        text("orders"),
        text("episodes"),
        spread_column("EX strict %"),
        Column(name="95 % interval", kind="interval"),
        *map(spread_column, ("EX official %", "right at first %", "repaired", "regressions", "steps")),
        *map(spread_column, ("osc. of all %", "osc. of wrong %")),
    )
    rows = [
        (
            arm.name,
            _orders(arm.orders),
            _episodes(arm),
            arm.spread(lambda one: percentage(one.execution_accuracy)),
            interval(arm.interval),
            arm.spread(lambda one: percentage(one.official_accuracy)),
            arm.spread(_initially_right),
            arm.spread(lambda one: one.repaired, decimals=1),
            arm.spread(lambda one: one.regressions, decimals=1),
            arm.spread(lambda one: one.steps, decimals=3),
            arm.spread(lambda one: percentage(one.oscillation)),
            arm.spread(lambda one: percentage(one.oscillation_of_wrong)),
        )
        for arm in arms
    ]
    notes = (
        "Mean ± sample standard deviation over orders. EX: finally right / all questions. Steps: repair "
        "generations / initially wrong. Osc.: questions in which an attempt repeats an earlier one. The "
        "interval resamples questions (10,000 times), each with its outcomes in all orders.",
    )
    return Table(name="methods", title="Accuracy by method", columns=columns, rows=tuple(rows), notes=notes)


def _initially_right(metrics: Metrics) -> float | None:
    wrong = metrics.initially_wrong
    return percentage((metrics.questions - wrong) / metrics.questions) if metrics.questions else None


def differences_table(part: Part) -> Table | None:
    """The reference minus every other method, paired by question."""
    if not part.comparisons:
        return None
    columns = (
        text("difference"), text("orders"), Column(name="questions"), Column(name="points"),
        Column(name="95 % interval", kind="interval"), text("certain"), Column(name="by database, 95 %",
        kind="interval"), Column(name="databases"),
    )  # fmt: skip
    rows = [
        (
            f"{one.ours.name} − {one.theirs.name}",
            _orders(one.orders),
            Number(value=one.questions),
            Number(value=one.by_query.value, decimals=2, signed=True),
            interval(one.by_query),
            "yes" if one.is_certain else "no",
            interval(one.by_database),
            Number(value=one.by_database.clusters),
        )
        for one in part.comparisons
    ]
    notes = [
        "Percentage points of strict EX, paired by question. Certain: the interval leaves out 0. The first "
        "interval resamples questions, the second whole databases; 10,000 resamples, percentiles 2.5, 97.5."
    ]
    single = [one.stands for one in part.comparisons if one.stands is not None]
    if single:
        notes.append(
            "Ran in one order, which stands for each of the other's, since order is nothing to a method "
            f"without memory: {', '.join(dict.fromkeys(single))}."
        )
    return Table(
        name=_named("differences", part),
        title=f"Paired differences: {part.reference.name} minus the others",
        columns=columns,
        rows=tuple(rows),
        notes=tuple(notes),
    )


def tests_table(part: Part) -> Table | None:
    """McNemar's exact test by order, with Holm's correction over the comparisons of an order."""
    if not part.comparisons:
        return None
    columns = (
        text("comparison"), Column(name="order"), Column(name="only ours right"),
        Column(name="only theirs right"), Column(name="p"), Column(name="p, Holm"),
    )  # fmt: skip
    rows = [
        (
            f"{one.ours.name} − {one.theirs.name}",
            Number(value=test.order),
            Number(value=test.only_ours),
            Number(value=test.only_theirs),
            Number(value=test.p_value, decimals=4),
            Number(value=adjusted, decimals=4),
        )
        for one in part.comparisons
        for test, adjusted in zip(one.tests, one.adjusted, strict=True)
    ]
    note = "Exact, two-sided. Holm: corrected for all comparisons shown of one order."
    return Table(
        name=_named("mcnemar", part),
        title=f"McNemar's test by order: {part.reference.name} against the others",
        columns=columns,
        rows=tuple(rows),
        notes=(note,),
    )


def failure_table(part: Part) -> Table:
    """What share of the initially wrong each method repaired, by the type of the first failure."""
    return _breakdown(
        part,
        "failure-type",
        "Repaired by type of the first failure, %",
        "initially wrong",
        by_failure_type,
        lambda group: group.initially_wrong,
        lambda group: group.repaired / group.initially_wrong if group.initially_wrong else None,
    )


def difficulty_table(part: Part) -> Table:
    """Accuracy by the suite's own difficulty."""
    questions = {str(question.id): question for question in part.source.questions}
    return _breakdown(
        part,
        "difficulty",
        "EX strict by difficulty, %",
        "questions",
        lambda records: by_difficulty(records, questions),
        lambda group: group.questions,
        lambda group: group.finally_right / group.questions,
    )


def database_table(part: Part) -> Table:
    """Accuracy by database."""
    return _breakdown(
        part,
        "database",
        "EX strict by database, %",
        "questions",
        by_database,
        lambda group: group.questions,
        lambda group: group.finally_right / group.questions,
    )


def _breakdown(
    part: Part,
    name: str,
    title: str,
    counted: str,
    of: Callable[[Sequence[EpisodeRecord]], list[Group]],
    count: Callable[[Group], int],
    share: Callable[[Group], float | None],
) -> Table:
    found = [arm.groups(of) for arm in part.arms]
    by_name = [
        [{group.name: group for group in groups} for groups in streams] for streams in found
    ]  # by arm, by stream
    counts: dict[str, int] = {}
    for streams in by_name:
        for groups in streams:
            for key, group in groups.items():
                counts[key] = max(counts.get(key, 0), count(group))
    rows = []
    for key in sorted(counts, key=lambda one: (-counts[one], one)):
        cells = [
            spread([percentage(share(groups[key])) for groups in streams if key in groups], decimals=1)
            for streams in by_name
        ]
        rows.append((key or "(unnamed)", Number(value=counts[key]), *cells))
    return Table(
        name=_named(name, part),
        title=title + (f" · {part.source.label}" if part.source.label else ""),
        columns=(
            text(name.replace("-", " ")),
            Column(name=counted),
            *(spread_column(arm.name) for arm in part.arms),
        ),
        rows=tuple(rows),
    )


def _orders(orders: Sequence[int]) -> str:
    return ", ".join(map(str, orders))


def _episodes(arm: Arm) -> str:
    counts = ", ".join(dict.fromkeys(str(len(stream.records)) for stream in arm.streams))
    total = len(arm.source.questions)
    return f"{counts} of {total}" if arm.partial else str(total)


def _named(name: str, part: Part) -> str:
    return f"{name}-{part.source.label}" if part.source.label else name
