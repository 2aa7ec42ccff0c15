"""Spider's hardness: the definition, clause by clause, and the distribution that Spider's authors publish."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from merit_sql.eval.hardness import hardness

COLUMN = [0, [0, 1, False], None]
COUNT = [3, [0, [0, 0, False], None]]
PLAIN = [0, [0, [0, 1, False], None]]
EQUALS = [False, 2, COLUMN, "1", None]
NOT_EQUALS = [True, 2, COLUMN, "1", None]
LIKE = [False, 9, COLUMN, "'%a%'", None]


def query(**clauses: object) -> dict[str, Any]:
    """``SELECT a FROM t`` with other clauses put in."""
    base: dict[str, Any] = {
        "from": {"table_units": [["table_unit", 0]], "conds": []},
        "select": [False, [PLAIN]],
        "where": [],
        "groupBy": [],
        "having": [],
        "orderBy": [],
        "limit": None,
        "intersect": None,
        "union": None,
        "except": None,
    }
    return {**base, **clauses}


def joined(tables: int) -> dict[str, Any]:
    return {"table_units": [["table_unit", index] for index in range(tables)], "conds": []}


NESTED = [False, 8, COLUMN, query(), None]


@pytest.mark.parametrize(
    ("sql", "level"),
    [
        pytest.param(query(), "easy", id="nothing"),
        pytest.param(query(where=[EQUALS]), "easy", id="one clause"),
        pytest.param(query(where=[EQUALS], limit=3), "medium", id="two clauses"),
        pytest.param(query(where=[LIKE]), "medium", id="LIKE counts beside WHERE"),
        pytest.param(query(select=[False, [PLAIN, PLAIN]]), "medium", id="two columns"),
        pytest.param(query(where=[EQUALS, "and", EQUALS]), "medium", id="two conditions"),
        pytest.param(query(where=[EQUALS, "or", EQUALS]), "medium", id="OR counts as a clause too"),
        pytest.param(query(select=[False, [COUNT, COUNT]], where=[EQUALS]), "medium", id="two extras"),
        pytest.param(
            query(**{"select": [False, [COUNT, COUNT]], "from": joined(2), "where": [EQUALS]}),
            "extra",
            id="two extras, two clauses: in none of the lower rules",
        ),
        pytest.param(query(**{"from": joined(2), "where": [EQUALS], "limit": 1}), "hard", id="three clauses"),
        pytest.param(query(**{"from": joined(3), "where": [EQUALS], "limit": 1}), "extra", id="four clauses"),
        pytest.param(
            query(select=[False, [COUNT, COUNT]], where=[EQUALS, "and", EQUALS]), "hard", id="three extras"
        ),
        pytest.param(query(where=[NESTED]), "hard", id="one subquery"),
        pytest.param(query(union=query()), "hard", id="one set operation"),
        pytest.param(query(union=query(), where=[NESTED]), "extra", id="two nested queries"),
        pytest.param(query(where=[NESTED], limit=1), "extra", id="a subquery and two clauses"),
        pytest.param(query(select=[False, [COUNT]], where=[NOT_EQUALS]), "medium", id="a negation counts"),
        pytest.param(
            query(orderBy=["desc", [[0, [3, 0, False], [1, 2, False]]]]),
            "medium",
            id="both columns of an ORDER BY expression count",
        ),
    ],
)
def test_the_definition(sql: dict[str, Any], level: str) -> None:
    assert hardness(sql) == level


def test_the_development_set_has_the_published_distribution(merit_data: Path) -> None:
    items = json.loads((merit_data / "spider" / "dev.json").read_text(encoding="utf-8"))
    if len(items) != 1034:
        pytest.skip("the published distribution is that of the whole development set")
    counts = Counter(hardness(item["sql"]) for item in items)
    assert counts == {"easy": 248, "medium": 446, "hard": 174, "extra": 166}
