"""The suite as a whole: its shape, its traps, and golds whose answer is the only reasonable one."""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from merit_sql.eval.suites import MiniQuestion, mini_questions
from merit_sql.eval.suites.build import build_mini

DATABASES = ["clinic_network", "publishing_house", "freight_lines", "live_venues", "research_grants"]
QUESTIONS = mini_questions()
TOP_PER_GROUP = {23, 40, 41, 63, 65, 66, 69, 97}
FAILURE_TYPES = {
    "join path": r"JOIN .* JOIN ",
    "count distinct": r"COUNT\(DISTINCT ",
    "null handling": r" IS (NOT )?NULL|COALESCE\(|LEFT JOIN",
    "date handling": r"STRFTIME|JULIANDAY|SUBSTR|LIKE '\d{4}|'\d{4}-\d\d-\d\d'",
    "having": r" HAVING ",
    "set operations": r" (UNION|INTERSECT|EXCEPT) ",
    "nested": r"\(SELECT ",
    "percentage": r"100\.0 \*",
    "string case": r"LOWER\(|UPPER\(",
}


def by_id(question: MiniQuestion) -> str:
    return f"{question['id']}-{question['db_id']}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_mini(tmp_path_factory.mktemp("mini-suite") / "databases")


@pytest.fixture(scope="module")
def connections(folder: Path) -> Iterator[dict[str, sqlite3.Connection]]:
    opened = {
        name: sqlite3.connect(f"file:{folder / name / name}.sqlite?mode=ro", uri=True) for name in DATABASES
    }
    yield opened
    for connection in opened.values():
        connection.close()


def test_questions_have_their_place_and_their_keys() -> None:
    assert [question["id"] for question in QUESTIONS] == list(range(110))
    assert all(
        list(question) == ["id", "db_id", "question", "evidence", "difficulty", "query"]
        for question in QUESTIONS
    )
    assert len({question["question"] for question in QUESTIONS}) == len(QUESTIONS)
    assert Counter(question["db_id"] for question in QUESTIONS) == dict.fromkeys(DATABASES, 22)


def test_difficulties_are_mixed_over_the_suite_and_over_each_database() -> None:
    shares = Counter(question["difficulty"] for question in QUESTIONS)
    assert shares.keys() == {"easy", "medium", "hard", "extra"}
    assert all(15 <= count <= 40 for count in shares.values())
    for name in DATABASES:
        own = Counter(q["difficulty"] for q in QUESTIONS if q["db_id"] == name)
        assert own.keys() == shares.keys()
    assert {question["difficulty"] for question in QUESTIONS[:30]} >= {"easy", "medium", "hard"}


@pytest.mark.parametrize("kind", FAILURE_TYPES)
def test_each_common_failure_is_asked_for_eight_times(kind: str) -> None:
    found = [q["id"] for q in QUESTIONS if re.search(FAILURE_TYPES[kind], q["query"])]
    assert len(found) >= 8, found


def test_top_per_group_is_asked_for_eight_times() -> None:
    correlated = {q["id"] for q in QUESTIONS if re.search(r"= \(SELECT (MAX|MIN)\(", q["query"])}
    assert correlated == TOP_PER_GROUP


def test_every_question_has_an_answer_worked_out_by_hand() -> None:
    here = Path(__file__).parent
    checked = [
        int(number)
        for path in here.glob("test_*.py")
        if path != Path(__file__)
        for number in re.findall(r"\bcheck\(\s*(\d+),", path.read_text(encoding="utf-8"))
    ]
    assert sorted(checked) == [question["id"] for question in QUESTIONS]


@pytest.mark.parametrize("name", DATABASES)
def test_databases_are_of_the_size_and_with_the_keys_promised(
    name: str, connections: dict[str, sqlite3.Connection]
) -> None:
    connection = connections[name]
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert 5 <= len(tables) <= 10
    references = 0
    for table in tables:
        columns = connection.execute("SELECT name, pk FROM pragma_table_info(?)", (table,)).fetchall()
        assert any(key for _, key in columns), f"{table} has no primary key"
        references += len(connection.execute("SELECT * FROM pragma_foreign_key_list(?)", (table,)).fetchall())
        (count,) = connection.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()
        assert 8 <= count <= 400, table
    assert references >= len(tables) - 2


def test_the_sources_are_small_and_readable() -> None:
    with as_file(files("merit_sql.eval.suites") / "mini") as sources:
        sizes = {path: path.stat().st_size for path in sources.rglob("*") if path.is_file()}
    assert sum(sizes.values()) < 500_000
    assert max(sizes.values()) < 200_000
    assert {path.suffix for path in sizes} == {".csv", ".sql", ".json", ".md"}


def test_nothing_trips_the_official_evaluators_rewriting() -> None:
    # Spider's evaluator puts 1 for every `value` in a prediction, and cuts predictions at a tab.
    with as_file(files("merit_sql.eval.suites") / "mini") as sources:
        ddl = "".join(path.read_text(encoding="utf-8") for path in sources.glob("*/schema.sql"))
    assert "value" not in ddl.lower()
    assert not [q["id"] for q in QUESTIONS if re.search(r"value|[\t\n;]", q["query"])]


@pytest.mark.parametrize("question", QUESTIONS, ids=by_id)
def test_a_gold_returns_rows(question: MiniQuestion, connections: dict[str, sqlite3.Connection]) -> None:
    rows = connections[question["db_id"]].execute(question["query"]).fetchall()
    assert rows
    assert not all(cell is None for cell in rows[0])


@pytest.mark.parametrize("question", [q for q in QUESTIONS if "ORDER BY" in q["query"]], ids=by_id)
def test_an_order_leaves_nothing_to_chance(
    question: MiniQuestion, connections: dict[str, sqlite3.Connection]
) -> None:
    select = sqlglot.parse_one(question["query"], read="sqlite")
    assert isinstance(select, exp.Select)
    named = {column.alias: column.this for column in select.expressions if column.alias}
    keys = [named.get(key.this.name, key.this).copy() for key in select.args["order"].expressions]
    limit = select.args.get("limit")
    wanted = int(limit.expression.this) if limit else None
    select.set("limit", None)
    select = select.select(*(exp.alias_(key, f"key_{i}") for i, key in enumerate(keys)), copy=False)
    rows = connections[question["db_id"]].execute(select.sql("sqlite")).fetchall()
    found = [row[-len(keys) :] for row in rows][: wanted + 1 if wanted else None]
    assert len(set(found)) == len(found)


def rounded(tree: exp.Expr) -> Iterator[tuple[exp.Round, int]]:
    for node in tree.find_all(exp.Round):
        yield node, int(node.args["decimals"].this)


@pytest.mark.parametrize("question", [q for q in QUESTIONS if "ROUND(" in q["query"]], ids=by_id)
def test_a_rounding_is_never_near_a_tie(
    question: MiniQuestion, connections: dict[str, sqlite3.Connection]
) -> None:
    tree = sqlglot.parse_one(question["query"], read="sqlite")
    decimals = {places for _, places in rounded(tree)}
    assert len(decimals) == 1
    bare = tree.transform(lambda node: node.this if isinstance(node, exp.Round) else node)
    for row in connections[question["db_id"]].execute(bare.sql("sqlite")):
        for cell in row:
            if isinstance(cell, float):
                assert abs((cell * 10 ** max(decimals)) % 1 - 0.5) > 1e-6, row


def weakened(tree: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """The query without one of its conditions, once for each condition in a WHERE or HAVING."""
    clauses = list(tree.find_all(exp.Where, exp.Having))
    for number, clause in enumerate(clauses):
        parts = list(clause.this.flatten()) if isinstance(clause.this, exp.And) else [clause.this]
        for part in range(len(parts)):
            changed = tree.copy()
            target = list(changed.find_all(exp.Where, exp.Having))[number]
            if len(parts) == 1:
                target.pop()
            else:
                kept = list(target.this.flatten())
                del kept[part]
                target.set("this", exp.and_(*kept))
            yield parts[part].sql("sqlite"), changed


@pytest.mark.parametrize("question", QUESTIONS, ids=by_id)
def test_every_condition_of_a_gold_matters(
    question: MiniQuestion, connections: dict[str, sqlite3.Connection]
) -> None:
    connection = connections[question["db_id"]]
    gold = Counter(connection.execute(question["query"]).fetchall())
    tree = sqlglot.parse_one(question["query"], read="sqlite")
    harmless = [
        condition
        for condition, changed in weakened(tree)
        if Counter(connection.execute(changed.sql("sqlite")).fetchall()) == gold
    ]
    assert harmless == []


@pytest.mark.parametrize(
    ("word", "without"),
    [
        (r"COUNT\(DISTINCT ", "COUNT("),
        (r"^SELECT DISTINCT ", "SELECT "),
        (r"(LOWER|UPPER)\(", "("),
        (r"COALESCE\((\w+), 0\)", r"\1"),
        (r"LEFT JOIN", "JOIN"),
        (r"100\.0 \*", "100 *"),
        (r"CAST\(([\w.]+) AS INTEGER\)", r"\1"),
        (r" / 100\.0", ""),
    ],
)
def test_a_trap_is_sprung_by_those_who_miss_it(
    word: str, without: str, connections: dict[str, sqlite3.Connection]
) -> None:
    missed = []
    for question in QUESTIONS:
        careless: Any = re.sub(word, without, question["query"])
        if careless != question["query"]:
            connection = connections[question["db_id"]]
            with closing(connection.execute(question["query"])) as cursor:
                gold = Counter(cursor.fetchall())
            missed.append((question["id"], Counter(connection.execute(careless).fetchall()) != gold))
    assert missed
    assert not [number for number, sprung in missed if not sprung]


NEAR_MISSES = {
    1: "SELECT DISTINCT p.name FROM practitioner p JOIN appointment a USING (practitioner_id) "
    "JOIN clinic c ON c.clinic_id = a.clinic_id WHERE c.city = 'Hull'",
    11: "SELECT DISTINCT d.title FROM diagnosis d JOIN appointment_diagnosis x ON x.diagnosis_code = d.code "
    "JOIN appointment a USING (appointment_id) JOIN practitioner p USING (practitioner_id) "
    "JOIN clinic c ON c.clinic_id = p.home_clinic_id WHERE c.name = 'Steelworks'",
    21: "SELECT STRFTIME('%m', issued_on), COUNT(*) FROM prescription "
    "WHERE STRFTIME('%Y', issued_on) = '2024' GROUP BY 1 ORDER BY 1",
    35: "SELECT i.invoice_id, i.amount_cents - p.amount_cents FROM invoice i JOIN payment p "
    "USING (invoice_id)",
    47: "SELECT COUNT(DISTINCT s.buyer_id) FROM sale s JOIN buyer b USING (buyer_id) "
    "WHERE b.town = 'Lyon' AND s.refunded = 0",
    54: "SELECT v.name FROM vessel v JOIN voyage y USING (vessel_id) JOIN port p "
    "ON p.code = y.destination_code WHERE p.name = 'Genoa' AND p.name <> 'Hamburg'",
    62: "SELECT a.name FROM author a JOIN book_author x USING (author_id) "
    "WHERE x.role IN ('author', 'translator') GROUP BY a.author_id",
    67: "SELECT t.ticket_type_id, COUNT(*) FROM ticket_type t JOIN sale s USING (ticket_type_id) "
    "WHERE s.refunded = 0 GROUP BY 1 HAVING COUNT(*) > t.quota / 3",
    75: "SELECT SUM(packages) FROM shipment_item JOIN invoice i USING (shipment_id) WHERE i.status = 'O'",
    81: "SELECT name FROM practitioner WHERE specialty_code = 'GP' AND practitioner_id NOT IN "
    "(SELECT supervisor_id FROM practitioner)",
    90: "SELECT DISTINCT p.name FROM patient p JOIN appointment a USING (patient_id) JOIN clinic c "
    "USING (clinic_id) WHERE a.status = 'done' AND c.name IN ('Riverside', 'Minster Gate')",
    91: "SELECT COUNT(*) FROM appointment WHERE JULIANDAY(scheduled_at) - JULIANDAY(booked_at) >= 30",
    102: "SELECT label FROM imprint WHERE parent_id = 1",
    107: "SELECT COUNT(*) FROM buyer WHERE newsletter <> 1",
}


@pytest.mark.parametrize("number", NEAR_MISSES)
def test_a_near_miss_is_told_from_the_gold(number: int, connections: dict[str, sqlite3.Connection]) -> None:
    question = QUESTIONS[number]
    connection = connections[question["db_id"]]
    gold = Counter(connection.execute(question["query"]).fetchall())
    assert Counter(connection.execute(NEAR_MISSES[number]).fetchall()) != gold
