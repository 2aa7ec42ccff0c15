"""The failure classifier on messages that SQLite itself wrote, and on our own refusals."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from merit_sql.databases.catalogue import Catalogue
from merit_sql.domain.execution import EMPTY_REPLY, REFUSED, Limits, timeout_message
from merit_sql.domain.failure import FailureKind, FailureType
from merit_sql.domain.status import Status
from merit_sql.nodes.failures import SQLITE, Rule, RuleTable, classify_failure

Says = Callable[[str], str]


@pytest.fixture
def says(tmp_path: Path) -> Iterator[Says]:
    """What SQLite answers to a statement on a read-only database with three tables and two views."""
    path = tmp_path / "d.sqlite"
    writable = sqlite3.connect(path)
    writable.executescript(
        """
        CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE song (id INTEGER PRIMARY KEY, name TEXT, singer_id INT REFERENCES singer(id));
        CREATE TABLE "not timed out" (id INT);
        CREATE VIEW stale AS SELECT gone FROM singer;
        CREATE VIEW orphan AS SELECT * FROM vanished;
        """
    )
    writable.close()
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)

    def run(sql: str) -> str:
        with pytest.raises(sqlite3.Error) as caught:
            connection.execute(sql).fetchall()
        return str(caught.value)

    yield run
    connection.close()


def classified(message: str | None, status: Status = Status.EXECUTION_ERROR) -> tuple[str, str]:
    failure = classify_failure(status, message)
    return failure.kind.value, failure.subtype


@pytest.mark.parametrize(
    ("sql", "message", "kind", "subtype"),
    [
        ("SELECT * FROM singers", "no such table: singers", "Schema Linking", "Missing Table"),
        ("SELECT * FROM main.x", "no such table: main.x", "Schema Linking", "Missing Table"),
        ("SELECT * FROM orphan", "no such table: main.vanished", "Schema Linking", "Missing Table"),
        ("SELECT age FROM singer", "no such column: age", "Schema Linking", "Missing Column"),
        ("SELECT s.age FROM singer s", "no such column: s.age", "Schema Linking", "Missing Column"),
        ("SELECT * FROM stale", "no such column: gone", "Schema Linking", "Missing Column"),
        ("DROP VIEW nobody", "no such view: nobody", "Schema Linking", "Missing View"),
        (
            "SELECT name FROM singer JOIN song ON singer_id = singer.id",
            "ambiguous column name: name",
            "Schema Linking",
            "Ambiguous Column",
        ),
        ("SELECT YEAR(name) FROM singer", "no such function: YEAR", "Syntax", "Unknown Function"),
        ("SELECT FROM singer", 'near "FROM": syntax error', "Syntax", "Parse Failure"),
        ("SELECT * FROM singer WHERE", "incomplete input", "Syntax", "Parse Failure"),
        ("SELECT 'Adele", 'unrecognized token: "\'Adele"', "Syntax", "Parse Failure"),
        ("SELECT #", 'unrecognized token: "#"', "Syntax", "Parse Failure"),
        (
            "SELECT name FROM singer WHERE COUNT(*) > 1",
            "misuse of aggregate: COUNT()",
            "Aggregation",
            "Aggregate Misuse",
        ),
        (
            "SELECT MAX(COUNT(*)) FROM singer",
            "misuse of aggregate function COUNT()",
            "Aggregation",
            "Aggregate Misuse",
        ),
        (
            "SELECT 1 FROM singer GROUP BY COUNT(*)",
            "aggregate functions are not allowed in the GROUP BY clause",
            "Aggregation",
            "Aggregate Misuse",
        ),
        ("SELECT 1 LIMIT 'x'", "datatype mismatch", "Filter/Value", "Type Mismatch"),
        (
            "DELETE FROM singer",
            "attempt to write a readonly database",
            "Execution",
            "Read-Only Violation",
        ),
        ("SELECT LENGTH()", "wrong number of arguments to function LENGTH()", "Unknown", "Unknown"),
        (
            "SELECT 1 UNION SELECT 1, 2",
            "SELECTs to the left and right of UNION do not have the same number of result columns",
            "Unknown",
            "Unknown",
        ),
    ],
)
def test_what_sqlite_says(says: Says, sql: str, message: str, kind: str, subtype: str) -> None:
    said = says(sql)
    # Releases differ in how they put an aggregate's misuse; either wording is in the table.
    assert said == message or (message.startswith("misuse") and said.startswith("misuse of aggregate"))
    assert classified(said) == (kind, subtype)


@pytest.mark.parametrize(
    ("message", "status", "kind", "subtype"),
    [
        (timeout_message(30), Status.TIMEOUT, "Execution", "Timeout"),
        (timeout_message(0.5), Status.EXECUTION_ERROR, "Execution", "Timeout"),
        (None, Status.TIMEOUT, "Execution", "Timeout"),
        ("no such table: t", Status.TIMEOUT, "Execution", "Timeout"),
        (REFUSED, Status.EXECUTION_ERROR, "Execution", "Read-Only Violation"),
        ("database not found: pets", Status.EXECUTION_ERROR, "Execution", "Database Not Found"),
        ("column 2: type mismatch", Status.EXECUTION_ERROR, "Filter/Value", "Type Mismatch"),
        (EMPTY_REPLY, Status.EXECUTION_ERROR, "Unknown", "Unknown"),
        ("result larger than 1000000 rows", Status.EXECUTION_ERROR, "Unknown", "Unknown"),
        (None, Status.DENOTATION_MISMATCH, "Result Mismatch", "Unknown"),
        ("  ", Status.DENOTATION_MISMATCH, "Result Mismatch", "Unknown"),
        (None, Status.EXECUTED, "Result Mismatch", "Unknown"),
        (None, Status.EXECUTION_ERROR, "Unknown", "Unknown"),
    ],
)
def test_our_own_refusals_and_what_has_no_message(
    message: str | None, status: Status, kind: str, subtype: str
) -> None:
    assert classified(message, status) == (kind, subtype)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("NO SUCH TABLE: T", ("Schema Linking", "Missing Table")),
        ("OperationalError: no such column: x", ("Schema Linking", "Missing Column")),
        ("error in view v: no such table: main.t", ("Schema Linking", "Missing Table")),
        ("Timed Out", ("Execution", "Timeout")),
        ("near 'x': Syntax Error", ("Syntax", "Parse Failure")),
    ],
)
def test_case_and_what_stands_before_do_not_matter(message: str, expected: tuple[str, str]) -> None:
    assert classified(message) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ('SELECT * FROM "timed out"', ("Schema Linking", "Missing Table")),
        ('SELECT singer."timed out" FROM singer', ("Schema Linking", "Missing Column")),
        ('SELECT * FROM "no such column: x"', ("Schema Linking", "Missing Table")),
        ('SELECT "no such table: x"(1)', ("Syntax", "Unknown Function")),
        ('SELECT 1 "a" "timed out"', ("Syntax", "Parse Failure")),
        ("SELECT 1 AS a 'no such table: x'", ("Syntax", "Parse Failure")),
        ("SELECT 'timed out", ("Syntax", "Parse Failure")),
        ('SELECT * FROM "not timed out"(1)', ("Unknown", "Unknown")),
        ('SELECT 1 FROM singer JOIN song USING ("timed out")', ("Unknown", "Unknown")),
        ('WITH "timed out" (a, b) AS (SELECT 1) SELECT * FROM "timed out"', ("Unknown", "Unknown")),
        ('WITH "timed out" AS (SELECT * FROM "timed out") SELECT * FROM "timed out"', ("Unknown", "Unknown")),
        ("SELECT json_extract('{}', 'timed out')", ("Unknown", "Unknown")),
    ],
)
def test_quoted_names_spoof_no_rule(says: Says, sql: str, expected: tuple[str, str]) -> None:
    said = says(sql)
    assert re.search("timed out|no such", said)
    assert classified(said) == expected


def test_the_first_rule_wins() -> None:
    assert [rule.subtype for rule in SQLITE.rules] == [
        "Timeout",
        "Missing Table",
        "Missing Column",
        "Missing View",
        "Ambiguous Column",
        "Unknown Function",
        "Parse Failure",
        "Aggregate Misuse",
        "Type Mismatch",
        "Read-Only Violation",
        "Database Not Found",
    ]
    assert classified("syntax error, then timed out") == ("Execution", "Timeout")
    assert classified("datatype mismatch; misuse of aggregate") == ("Aggregation", "Aggregate Misuse")


def test_the_text_that_decided_is_kept() -> None:
    assert classify_failure(Status.EXECUTION_ERROR, "No such column: x").decided_by == "No such column"
    assert classify_failure(Status.TIMEOUT, timeout_message(2)).decided_by == "timed out after 2 s"
    assert classify_failure(Status.EXECUTION_ERROR, "disk I/O error").decided_by == "disk I/O error"
    assert classify_failure(Status.DENOTATION_MISMATCH, None).decided_by == "DENOTATION_MISMATCH"


def test_a_correct_attempt_has_no_failure() -> None:
    with pytest.raises(ValueError, match="refused attempts only"):
        classify_failure(Status.CORRECT, None)


def test_a_failure_survives_as_plain_data() -> None:
    failure = classify_failure(Status.EXECUTION_ERROR, "no such table: t")
    assert FailureType.from_dict(failure.to_dict()) == failure


def test_a_message_of_megabytes_is_classified() -> None:
    token = 'near "' * 300_000
    assert classified(f'near "{token}": syntax error') == ("Syntax", "Parse Failure")
    assert classified(f"strange {token}") == ("Unknown", "Unknown")


def test_another_dialect_is_another_table() -> None:
    table = RuleTable(
        dialect="sqlstate",
        quoted=re.compile(r"(?P<kept>^\w{5}: ).*"),
        rules=(Rule(phrases=("42P01",), kind=FailureKind.SCHEMA_LINKING, subtype="Missing Table"),),
    )
    failure = classify_failure(Status.EXECUTION_ERROR, '42P01: relation "x" does not exist', table)
    assert (failure.kind, failure.subtype) == (FailureKind.SCHEMA_LINKING, "Missing Table")
    other = classify_failure(Status.EXECUTION_ERROR, '42703: column "42P01" does not exist', table)
    assert other.kind is FailureKind.UNKNOWN


@pytest.mark.parametrize(
    ("sql", "limits", "kind", "subtype"),
    [
        ("SELECT name FROM customers", Limits(), "Schema Linking", "Missing Table"),
        ("SELECT surname FROM customer", Limits(), "Schema Linking", "Missing Column"),
        ("SELECT id FROM customer JOIN purchase", Limits(), "Schema Linking", "Ambiguous Column"),
        ("SELECT CONCAT_UP(name) FROM customer", Limits(), "Syntax", "Unknown Function"),
        ("SELECT name FROM customer WHERE", Limits(), "Syntax", "Parse Failure"),
        ("SELECT name FROM customer WHERE SUM(id) > 1", Limits(), "Aggregation", "Aggregate Misuse"),
        ("SELECT name FROM customer LIMIT 'two'", Limits(), "Filter/Value", "Type Mismatch"),
        ("DELETE FROM customer", Limits(), "Execution", "Read-Only Violation"),
        ("SELECT 1; DROP TABLE customer", Limits(), "Execution", "Read-Only Violation"),
        ("", Limits(), "Unknown", "Unknown"),
        ("SELECT id FROM purchase", Limits(rows=3), "Unknown", "Unknown"),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n",
            Limits(seconds=0.2),
            "Execution",
            "Timeout",
        ),
    ],
)
def test_what_our_own_databases_say(shop: Path, sql: str, limits: Limits, kind: str, subtype: str) -> None:
    with Catalogue.from_file(shop) as catalogue:
        execution = catalogue["shop"].execute(sql, limits=limits)
    assert classified(execution.error, execution.status) == (kind, subtype)
