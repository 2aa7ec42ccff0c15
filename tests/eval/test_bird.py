"""BIRD's evaluator on a small real database."""

import sqlite3
from collections.abc import Iterator
from typing import cast

import pytest

from merit_sql.databases.catalogue import Catalogue
from merit_sql.databases.sqlite import SqliteDatabase
from merit_sql.domain.execution import EMPTY_REPLY, REFUSED, Execution, Limits, TextDecoding
from merit_sql.domain.status import Status
from merit_sql.eval.bird import BirdEvaluator, Metric
from merit_sql.eval.judgement import GOLD_FAILS, NO_DATABASE, Judgement

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
SLOW = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT count(*) FROM n"
)

GOLDS = {
    0: ("hero", "SELECT name, power FROM hero"),
    1: ("hero", "SELECT name FROM hero WHERE power > 99"),
    2: ("hero", "SELECT missing FROM hero"),
    3: ("gone", "SELECT 1"),
    4: ("hero", ENDLESS),
    5: ("hero", SLOW),
}


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalogue]:
    root = tmp_path_factory.mktemp("data")
    folder = root / "bird" / "dev_databases" / "hero"
    folder.mkdir(parents=True)
    (root / "bird" / "dev_tables.json").write_text("[]")
    connection = sqlite3.connect(folder / "hero.sqlite")
    connection.execute("CREATE TABLE hero (name TEXT, power INTEGER, raw TEXT)")
    connection.executemany(
        "INSERT INTO hero VALUES (?, ?, CAST(? AS TEXT))", [("Ada", 2, b"\xff"), ("Bo", 4, b"ok")]
    )
    connection.commit()
    connection.close()
    with Catalogue.from_bird(root, workers=1) as opened:
        yield opened


def judge(catalogue: Catalogue, question: int, sql: str, metric: Metric = "ex") -> Judgement:
    return BirdEvaluator(catalogue, GOLDS, metric=metric, timeout=20).judge(question, sql)


@pytest.mark.parametrize(
    ("sql", "official", "soft", "status", "error"),
    [
        ("SELECT name, power FROM hero ORDER BY power DESC", 1, 0.0, Status.CORRECT, None),
        ("SELECT name, power FROM hero, (SELECT 1 UNION SELECT 2)", 1, 1.0, Status.CORRECT, None),
        ("SELECT power, name FROM hero", 0, 1.0, Status.DENOTATION_MISMATCH, None),
        ("SELECT name FROM hero", 0, 2 / 3, Status.DENOTATION_MISMATCH, None),
        ("SELECT name,\n\tpower -- both\nFROM hero;", 1, 1.0, Status.CORRECT, None),
        (";SELECT name, power FROM hero", 1, 1.0, Status.CORRECT, None),
        ("SELECT missing FROM hero", 0, 0.0, Status.EXECUTION_ERROR, "no such column: missing"),
        ("DROP TABLE hero", 0, 0.0, Status.EXECUTION_ERROR, REFUSED),
        ("", 0, 0.0, Status.EXECUTION_ERROR, EMPTY_REPLY),
    ],
)
def test_execution_accuracy_soft_f1_and_the_strict_verdict(
    catalogue: Catalogue, *, sql: str, official: int, soft: float, status: Status, error: str | None
) -> None:
    strict = int(status is Status.CORRECT)
    assert judge(catalogue, 0, sql) == Judgement(official=official, strict=strict, status=status, error=error)
    softly = judge(catalogue, 0, sql, "soft-f1")
    assert softly.official == pytest.approx(soft)
    assert (softly.strict, softly.status, softly.error) == (strict, status, error)


def test_undecodable_text_is_an_error(catalogue: Catalogue) -> None:
    judgement = judge(catalogue, 0, "SELECT raw, power FROM hero")
    assert (judgement.official, judgement.strict) == (0, 0)
    assert judgement.status is Status.EXECUTION_ERROR


@pytest.mark.parametrize(("metric", "official"), [("ex", 1), ("soft-f1", 1), ("ves", 0), ("r-ves", 0)])
def test_an_empty_prediction_is_strictly_wrong_even_where_the_gold_is_empty(
    catalogue: Catalogue, metric: Metric, official: int
) -> None:
    assert judge(catalogue, 1, "", metric) == Judgement(
        official=official, strict=0, status=Status.EXECUTION_ERROR, error=EMPTY_REPLY
    )


def test_a_question_that_cannot_be_scored_is_unscored_beside_the_official_zero(
    catalogue: Catalogue,
) -> None:
    evaluator = BirdEvaluator(catalogue, GOLDS, timeout=0.3)
    for question, official, reason in ((2, 0, GOLD_FAILS), (3, None, NO_DATABASE), (4, 0, GOLD_FAILS)):
        assert not evaluator.scorable(question)
        for sql in ("SELECT 1", "", "SELECT missing FROM hero"):
            assert evaluator.judge(question, sql) == Judgement(
                official=official, strict=None, status=None, error=reason
            )
    assert evaluator.scorable(0)


def test_an_endless_prediction_is_stopped_at_the_limit_that_the_message_names(catalogue: Catalogue) -> None:
    evaluator = BirdEvaluator(catalogue, GOLDS, timeout=0.3)
    assert evaluator.judge(0, ENDLESS) == Judgement(
        official=0, strict=0, status=Status.TIMEOUT, error="timed out after 0.3 s"
    )
    assert evaluator.judge(0, GOLDS[0][1]).strict == 1


class Watched:
    """A real database that keeps what it was asked for and how long each answer took."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.database = database
        self.asked: list[tuple[str, float, float]] = []

    def execute(self, sql: str, *, limits: Limits, decoding: TextDecoding) -> Execution:
        execution = self.database.execute(sql, limits=limits, decoding=decoding)
        self.asked.append((sql, limits.seconds, execution.seconds))
        return execution


def test_a_prediction_may_take_what_its_gold_left_of_the_limit(catalogue: Catalogue) -> None:
    watched = Watched(catalogue["hero"])
    evaluator = BirdEvaluator(cast(Catalogue, {"hero": watched}), GOLDS, timeout=20)
    evaluator.judge(5, "SELECT 1")
    evaluator.judge(5, "SELECT 2")
    (gold, gold_limit, gold_seconds), *predictions = watched.asked
    assert (gold, gold_limit) == (SLOW, 20)
    assert gold_seconds > 0
    assert [(sql, limit) for sql, limit, _ in predictions] == [
        ("SELECT 1", 20 - gold_seconds),
        ("SELECT 2", 20 - gold_seconds),
    ]


def test_efficiency_is_near_one_for_the_gold_itself_and_low_for_a_slow_query(catalogue: Catalogue) -> None:
    gold = GOLDS[0][1]
    same = judge(catalogue, 0, gold, "ves")
    assert same.official is not None
    assert 0.5 < same.official < 2
    wasteful = f"SELECT name, power FROM hero WHERE ({SLOW.replace('300000', '2000')}) > 0"
    slow = judge(catalogue, 0, wasteful, "ves")
    assert slow.strict == 1
    assert slow.official is not None
    assert 0 < slow.official < 0.5
    assert judge(catalogue, 0, wasteful, "r-ves").official == 0.5
    assert judge(catalogue, 0, "SELECT name FROM hero", "r-ves").official == 0
    assert judge(catalogue, 0, "SELECT name FROM hero", "ves").official == 0


@pytest.mark.parametrize("metric", ["ves", "r-ves"])
def test_the_limit_is_one_executions_and_not_that_of_all_its_timings(
    catalogue: Catalogue, metric: Metric
) -> None:
    limit = 30 * catalogue["hero"].execute(SLOW.replace("300000", "100000")).seconds
    golds = {0: ("hero", SLOW.replace("300000", "100000"))}
    evaluator = BirdEvaluator(catalogue, golds, metric=metric, timeout=limit)
    official = evaluator.judge(0, golds[0][1]).official
    assert official is not None
    assert official > 0.5


def test_settings_name_what_the_verdicts_depend_on(catalogue: Catalogue) -> None:
    evaluator = BirdEvaluator(catalogue, GOLDS, metric="soft-f1", timeout=5)
    assert evaluator.settings() == {"kind": "bird", "metric": "soft-f1", "timeout": 5}
