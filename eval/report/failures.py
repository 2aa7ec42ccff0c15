"""Tables of how failures go: by step, by type, and from one type to the next."""

from collections.abc import Callable, Sequence

from merit_sql.domain.episode import EpisodeRecord
from merit_sql.domain.failure import FailureKind
from merit_sql.eval.breakdowns import RIGHT, grouped, right, success_by_step, type_flow
from merit_sql.eval.report.figures import Arm, spread
from merit_sql.eval.report.sources import Source
from merit_sql.eval.report.tables import Cell, Column, Number, Table, spread_column, text


def budget_of(source: Source) -> int:
    """K of a source, or the largest number of revisions that an episode has where the manifest says none."""
    budget = source.identity.get("budget")
    used = [len(record.attempts) - 1 for stream in source.streams for record in stream.records]
    return max([*used, budget if isinstance(budget, int) else 0])


def steps_table(arms: Sequence[Arm]) -> Table:
    """Share of all questions that are right after at most k revisions."""
    budget = max(budget_of(arm.source) for arm in arms)
    rows: list[tuple[Cell, ...]] = []
    for arm in arms:
        own = budget_of(arm.source)
        curves = [success_by_step(stream.records, own) for stream in arm.streams]
        cells = [
            spread([100 * curve[k] for curve in curves]) if k <= own else None for k in range(budget + 1)
        ]
        rows.append((arm.name, *cells))
    return Table(
        name="steps",
        title="Right after at most k revisions, % of all questions",
        columns=(text("method"), *(spread_column(f"k = {k}") for k in range(budget + 1))),
        rows=tuple(rows),
    )


NOT_REFUTED = "ran, nobody judged"
"""Stands for the type of an attempt that is wrong and that nobody refuted."""


def type_slot(kind: str) -> int:
    """A failure type's colour in charts: the same in all of them."""
    kinds = [one.value for one in FailureKind]
    return len(kinds) if kind == RIGHT else kinds.index(kind) if kind in kinds else len(kinds) - 1


def last_type(record: EpisodeRecord) -> str | None:
    """The failure type of an episode's last attempt; None where it is right."""
    if right(record):
        return None
    failure = record.attempts[-1]["failure"]
    return NOT_REFUTED if failure is None else failure["type"]


def first_type(record: EpisodeRecord) -> str | None:
    """The failure type of an episode's first attempt; None where it is right."""
    if right(record, 0):
        return None
    failure = record.attempts[0]["failure"]
    return NOT_REFUTED if failure is None else failure["type"]


def composition(arm: Arm, kind: Callable[[EpisodeRecord], str | None]) -> dict[str, float]:
    """Mean number of questions of each failure type, over an arm's orders."""
    counts: dict[str, float] = {}
    for stream in arm.streams:
        for group in grouped(stream.records, kind):
            counts[group.name] = counts.get(group.name, 0.0) + group.questions / len(arm.streams)
    return counts


def composition_table(arms: Sequence[Arm]) -> Table:
    """Failure types of the first and of the last attempts."""
    rows_of = []
    for arm in arms:
        rows_of.append((f"{arm.name}, first attempts", composition(arm, first_type)))
        rows_of.append((f"{arm.name}, last attempts", composition(arm, last_type)))
    types = sorted({kind for _, counts in rows_of for kind in counts})
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            *(Number(value=counts.get(kind, 0.0), decimals=1) for kind in types),
            Number(value=sum(counts.values()), decimals=1),
        )
        for name, counts in rows_of
    ]
    return Table(
        name="composition",
        title="Failure types of first and last attempts, questions",
        columns=(text("attempts"), *(Column(name=kind) for kind in types), Column(name="all wrong")),
        rows=tuple(rows),
        notes=("Means over orders.",),
    )


def flow_of(arm: Arm) -> dict[tuple[str, str], float]:
    """How often an attempt of one type was followed by one of another, mean over an arm's orders."""
    flow: dict[tuple[str, str], float] = {}
    for stream in arm.streams:
        for pair, count in type_flow(stream.records).items():
            flow[pair] = flow.get(pair, 0.0) + count / len(arm.streams)
    return flow


def flow_table(arm: Arm) -> Table:
    """From which failure type to which the attempts of a method went."""
    flow = flow_of(arm)
    before = sorted({pair[0] for pair in flow})
    after = sorted({pair[1] for pair in flow})
    rows: list[tuple[Cell, ...]] = [
        (one, *(Number(value=flow.get((one, other), 0.0), decimals=1) for other in after)) for one in before
    ]
    return Table(
        name=f"flow-{arm.name.replace(' · ', '-')}",
        title=f"From one attempt's type to the next's: {arm.name}",
        columns=(text("from, down; to, across"), *(Column(name=kind) for kind in after)),
        rows=tuple(rows),
        notes=("Transitions of one order, means over orders.",),
    )
