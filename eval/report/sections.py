"""The tables of a report by section, and all of them in a row."""

from collections.abc import Callable, Sequence

from merit_sql.eval.report.content import (
    accuracy_table,
    database_table,
    differences_table,
    difficulty_table,
    failure_table,
    tests_table,
)
from merit_sql.eval.report.costs import calls_table, seconds_table, streams_table, tokens_table
from merit_sql.eval.report.failures import composition_table, flow_table, steps_table
from merit_sql.eval.report.figures import Arm, Part
from merit_sql.eval.report.tables import Table


def arms_in(parts: Sequence[Part]) -> list[Arm]:
    """The methods of all sources, in their order."""
    return [arm for part in parts for arm in part.arms]


def accuracy_tables(parts: Sequence[Part]) -> list[Table]:
    """Accuracy by method, and how sure the differences are; these never cross sources."""
    return [accuracy_table(arms_in(parts)), *_each(parts, differences_table, tests_table)]


def gain_tables(parts: Sequence[Part]) -> list[Table]:
    """Where each source's methods gain."""
    return _each(parts, failure_table, difficulty_table, database_table)


def cost_tables(parts: Sequence[Part]) -> list[Table]:
    """Calls, tokens and seconds."""
    arms = arms_in(parts)
    return [calls_table(arms), tokens_table(arms), seconds_table(arms)]


def all_tables(parts: Sequence[Part]) -> list[Table]:
    """Every table, in the order of a report."""
    arms = arms_in(parts)
    return [
        *accuracy_tables(parts),
        steps_table(arms),
        *gain_tables(parts),
        composition_table(arms),
        *map(flow_table, arms),
        *cost_tables(parts),
        streams_table(arms),
    ]


def _each(parts: Sequence[Part], *makers: Callable[[Part], Table | None]) -> list[Table]:
    return [table for make in makers for part in parts if (table := make(part)) is not None]
