"""Spider's hardness of a question, from the structure of its reference query.

The structure is the ``sql`` field of ``dev.json``. A condition list alternates condition units and the
words ``and``/``or``; a condition unit is [negated, operator, value unit, value, second value].
"""

from collections.abc import Mapping, Sequence
from typing import Any

_LIKE = 9
"""Index of LIKE among the operators of a condition unit."""


def hardness(sql: Mapping[str, Any]) -> str:
    """``easy``, ``medium``, ``hard`` or ``extra``, by the definition of Spider's official scorer."""
    clauses = _clauses(sql)
    nested = _nested_queries(sql)
    extras = _extras(sql)
    if clauses <= 1 and extras == 0 and nested == 0:
        return "easy"
    if nested == 0 and ((extras <= 2 and clauses <= 1) or (extras < 2 and clauses <= 2)):
        return "medium"
    if nested == 0 and ((extras > 2 and clauses <= 2) or (extras <= 2 and 2 < clauses <= 3)):
        return "hard"
    if nested <= 1 and clauses <= 1 and extras == 0:
        return "hard"
    return "extra"


def _conditions(sql: Mapping[str, Any]) -> list[Sequence[Any]]:
    return [unit for part in _condition_lists(sql) for unit in part[::2]]


def _condition_lists(sql: Mapping[str, Any]) -> list[Sequence[Any]]:
    return [sql["from"]["conds"], sql["where"], sql["having"]]


def _clauses(sql: Mapping[str, Any]) -> int:
    """WHERE, GROUP BY, ORDER BY, LIMIT, each join, each OR and each LIKE."""
    present = sum(bool(sql[clause]) for clause in ("where", "groupBy", "orderBy"))
    limited = int(sql["limit"] is not None)
    joins = max(len(sql["from"]["table_units"]) - 1, 0)
    disjunctions: int = sum(word == "or" for part in _condition_lists(sql) for word in part[1::2])
    likes: int = sum(unit[1] == _LIKE for unit in _conditions(sql))
    return present + limited + joins + disjunctions + likes


def _nested_queries(sql: Mapping[str, Any]) -> int:
    """Subqueries in conditions, and the right-hand side of INTERSECT, UNION and EXCEPT."""
    in_conditions = sum(isinstance(value, dict) for unit in _conditions(sql) for value in unit[3:5])
    return in_conditions + sum(sql[operator] is not None for operator in ("intersect", "union", "except"))


def _extras(sql: Mapping[str, Any]) -> int:
    """More than one aggregate, selected column, condition (words counted) or grouping column.

    What counts as an aggregate is any unit whose first item is not zero, as in the official definition:
    a negated condition in WHERE and a connecting word in HAVING count too.
    """
    units = [*sql["select"][1], *sql["where"][::2], *sql["groupBy"], *sql["having"]]
    if sql["orderBy"]:
        units += [column for unit in sql["orderBy"][1] for column in unit[1:3] if column]
    aggregates = sum(bool(unit[0]) for unit in units)
    many = (aggregates, len(sql["select"][1]), len(sql["where"]), len(sql["groupBy"]))
    return sum(count > 1 for count in many)
