"""Spider's evaluator on small real databases, rule by rule, and its strict verdict."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from merit_sql.databases.catalogue import Catalogue
from merit_sql.domain.execution import EMPTY_REPLY, REFUSED
from merit_sql.domain.status import Status
from merit_sql.eval.judgement import GOLD_FAILS, NO_DATABASE, Judgement
from merit_sql.eval.spider import Distinct, SpiderEvaluator

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

GOLDS = {
    0: ("shop", "SELECT name FROM item ORDER BY price"),
    1: ("shop", "SELECT name, price FROM item"),
    2: ("shop", "SELECT kind FROM item"),
    3: ("shop", "SELECT DISTINCT kind FROM item"),
    4: ("shop", "SELECT name FROM item WHERE price > 99"),
    5: ("shop", "SELECT name FROM item WHERE price > = 2"),
    6: ("shop", "SELECT missing FROM item"),
    7: ("gone", "SELECT 1"),
    8: ("shop", "SELECT YEAR(CURDATE())"),
    9: ("shop", "SELECT note FROM item WHERE name = 'tea'"),
    10: ("shop", "SELECT 'order by', name FROM item"),
    11: ("shop", "SELECT 1"),
    12: ("shop", f"{ENDLESS} LIMIT 1"),
}
ROWS = [("tea", 2, "drink", b"caf\xe9"), ("rum", 3, "drink", b"x"), ("nut", 1, "food", b"x")]


def build(path: Path, rows: list[tuple[str, int, str, bytes]]) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE item (name TEXT, price INTEGER, kind TEXT, note TEXT)")
    connection.executemany("INSERT INTO item VALUES (?, ?, ?, CAST(? AS TEXT))", rows)
    connection.commit()
    connection.close()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    folder = root / "spider" / "database" / "shop"
    folder.mkdir(parents=True)
    (root / "spider" / "tables.json").write_text("[]")
    build(folder / "shop.sqlite", ROWS)
    build(folder / "shop_more.sqlite.2", [*ROWS, ("gin", 9, "drink", b"y")])
    (folder / "notes.txt").write_text("no database")
    return root


@pytest.fixture(scope="module")
def catalogue(data: Path) -> Iterator[Catalogue]:
    with Catalogue.from_spider(data, workers=1) as opened:
        yield opened


def judge(
    catalogue: Catalogue, question: int, sql: str, distinct: Distinct = "keep", timeout: float = 20
) -> Judgement:
    return SpiderEvaluator(catalogue, GOLDS, distinct=distinct, timeout=timeout).judge(question, sql)


@pytest.mark.parametrize(
    ("question", "sql", "official", "strict"),
    [
        pytest.param(1, "SELECT price, name FROM item", 1, 1, id="columns in another order"),
        pytest.param(1, "SELECT name, price FROM item ORDER BY price", 1, 1, id="rows in another order"),
        pytest.param(0, "SELECT name FROM item ORDER BY name", 0, 0, id="row order counts: the gold orders"),
        pytest.param(10, "SELECT 'order by', name FROM item ORDER BY 2", 0, 0, id="order by in a literal"),
        pytest.param(1, "SELECT name, price FROM item LIMIT 3", 0, 0, id="only the second file differs"),
        pytest.param(4, "SELECT kind, price FROM item WHERE 0", 1, 1, id="both empty, other columns"),
        pytest.param(2, "SELECT DISTINCT kind FROM item", 0, 0, id="DISTINCT counts"),
        pytest.param(5, "SELECT name FROM item WHERE price > = 2", 1, 0, id="repaired officially alone"),
        pytest.param(5, "SELECT name FROM item WHERE price >= 2", 1, 1, id="the gold is repaired"),
        pytest.param(8, "SELECT 2020", 1, 1, id="the gold's year is replaced"),
        pytest.param(8, "SELECT year( CURDATE() )", 1, 0, id="the prediction's year officially alone"),
        pytest.param(11, "SELECT value", 1, 0, id="value becomes 1 officially alone"),
        pytest.param(11, "SELECT values0", 0, 0, id="inside words too"),
        pytest.param(11, "SELECT Value", 0, 0, id="but minds the case"),
        pytest.param(9, "SELECT 'caf'", 1, 1, id="undecodable bytes are dropped"),
        pytest.param(11, "SELECT 1; SELECT 1", 0, 0, id="two statements"),
        pytest.param(11, "SELECT 1;", 1, 1, id="a trailing semicolon"),
        pytest.param(11, "; ;SELECT 1", 1, 1, id="semicolons before the statement"),
        pytest.param(11, "SELECT 1;;", 0, 0, id="two semicolons after it"),
        pytest.param(11, "SELECT '1'", 0, 0, id="text is no number"),
        pytest.param(11, "SELECT 1.0", 1, 1, id="a real equals an integer"),
    ],
)
def test_the_rules(catalogue: Catalogue, question: int, sql: str, official: int, strict: int) -> None:
    judgement = judge(catalogue, question, sql)
    assert (judgement.official, judgement.strict) == (official, strict)


@pytest.mark.parametrize(
    ("question", "sql", "official", "strict"),
    [
        pytest.param(2, "SELECT DISTINCT kind FROM item", 1, 0, id="dropped from the prediction"),
        pytest.param(3, "SELECT kind FROM item", 1, 0, id="dropped from the gold"),
        pytest.param(3, "SELECT DISTINCT kind FROM item", 1, 1, id="on both sides"),
        pytest.param(11, "SELECT 1; SELECT 2", 1, 0, id="the first statement alone is left"),
        pytest.param(11, "SELECT count(DISTINCT 1) FROM (SELECT 1)", 1, 1, id="inside COUNT"),
        pytest.param(4, "", 0, 0, id="no statement to strip"),
    ],
)
def test_strip_mode_changes_the_official_verdict_alone(
    catalogue: Catalogue, question: int, sql: str, official: int, strict: int
) -> None:
    judgement = judge(catalogue, question, sql, "strip")
    assert (judgement.official, judgement.strict) == (official, strict)


@pytest.mark.parametrize("sql", ["", "  ", ";", "-- nothing"])
def test_an_empty_prediction_is_strictly_wrong_even_where_the_gold_is_empty(
    catalogue: Catalogue, sql: str
) -> None:
    wrong = Status.EXECUTION_ERROR
    assert judge(catalogue, 4, sql) == Judgement(official=1, strict=0, status=wrong, error=EMPTY_REPLY)
    assert judge(catalogue, 1, sql) == Judgement(official=0, strict=0, status=wrong, error=EMPTY_REPLY)


@pytest.mark.parametrize(
    ("sql", "status", "error"),
    [
        ("SELECT name, price FROM item", Status.CORRECT, None),
        ("SELECT name FROM item", Status.DENOTATION_MISMATCH, None),
        ("SELECT missing FROM item", Status.EXECUTION_ERROR, "no such column: missing"),
        ("SELECT FROM item", Status.EXECUTION_ERROR, 'near "FROM": syntax error'),
        ("DELETE FROM item", Status.EXECUTION_ERROR, REFUSED),
        ("WITH x AS (SELECT 1) DELETE FROM item", Status.EXECUTION_ERROR, REFUSED),
        ("PRAGMA table_info(item)", Status.EXECUTION_ERROR, REFUSED),
    ],
)
def test_status_and_error_are_those_of_the_strict_verdict(
    catalogue: Catalogue, sql: str, status: Status, error: str | None
) -> None:
    judgement = judge(catalogue, 1, sql)
    assert (judgement.status, judgement.error) == (status, error)
    assert judgement.official == judgement.strict == (1 if status is Status.CORRECT else 0)


def test_an_endless_query_is_stopped_and_the_next_one_runs(catalogue: Catalogue) -> None:
    evaluator = SpiderEvaluator(catalogue, GOLDS, timeout=0.3)
    wrong = Judgement(official=0, strict=0, status=Status.TIMEOUT, error="timed out after 0.3 s")
    assert evaluator.judge(1, ENDLESS) == wrong
    assert evaluator.judge(11, "SELECT 1").strict == 1


def test_a_question_that_cannot_be_scored_is_unscored_never_wrong(catalogue: Catalogue) -> None:
    evaluator = SpiderEvaluator(catalogue, GOLDS, timeout=0.3)
    for question, reason in ((6, GOLD_FAILS), (7, NO_DATABASE), (12, GOLD_FAILS)):
        assert not evaluator.scorable(question)
        for sql in ("SELECT 1", "", "SELECT missing FROM item"):
            assert evaluator.judge(question, sql) == Judgement(
                official=None, strict=None, status=None, error=reason
            )
    assert evaluator.scorable(1)


def test_a_reply_is_judged_officially_as_the_line_it_becomes(catalogue: Catalogue) -> None:
    evaluator = SpiderEvaluator(catalogue, GOLDS)
    reply = "SELECT name, -- both\n\tprice\nFROM item;"
    assert evaluator.judge_reply(1, reply) == Judgement(
        official=1, strict=1, status=Status.CORRECT, error=None
    )
    unwritable = evaluator.judge_reply(11, "SELECT 1 WHERE 'a\nb' = 'a' || char(10) || 'b'")
    assert unwritable == Judgement(official=None, strict=1, status=Status.CORRECT, error=None)


def test_verdicts_do_not_depend_on_what_was_judged_before(catalogue: Catalogue) -> None:
    evaluator = SpiderEvaluator(catalogue, GOLDS, distinct="strip")
    texts = ["SELECT kind FROM item", "SELECT DISTINCT kind FROM item", "SELECT 1", ""]
    first = {(question, sql): evaluator.judge(question, sql) for question in (2, 3) for sql in texts}
    again = {key: evaluator.judge(*key) for key in reversed(first)}
    assert first == again


def test_settings_name_what_the_verdicts_depend_on(catalogue: Catalogue) -> None:
    evaluator = SpiderEvaluator(catalogue, GOLDS, distinct="strip", timeout=5)
    assert evaluator.settings() == {"kind": "spider", "distinct": "strip", "timeout": 5}
