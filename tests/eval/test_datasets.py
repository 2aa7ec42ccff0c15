"""Suites are read from the benchmarks' own files; answers stay inside the evaluator."""

import hashlib
import json
from pathlib import Path

import pytest

from merit_sql.domain.errors import DataError
from merit_sql.eval.datasets import Question, Suite, load_suite


@pytest.mark.parametrize(("name", "questions", "databases"), [("spider", 1034, 20), ("bird", 1534, 11)])
def test_the_whole_development_sets(merit_data: Path, name: str, questions: int, databases: int) -> None:
    suite = load_suite(name, merit_data)
    with suite.catalogue:
        assert len(suite.questions) == questions
        assert [question.id for question in suite.questions] == list(range(questions))
        assert len({question.database_id for question in suite.questions}) == databases
        content = (merit_data / name / "dev.json").read_bytes()
        assert suite.digest == hashlib.sha256(content).hexdigest()


def test_a_bird_question_keeps_its_evidence_and_difficulty(merit_data: Path) -> None:
    suite = load_suite("bird", merit_data)
    with suite.catalogue:
        assert suite.questions[0] == Question(
            id=0,
            database_id="california_schools",
            question="What is the highest eligible free rate for K-12 students in the schools in "
            "Alameda County?",
            evidence="Eligible free rate for K-12 = `Free Meal Count (K-12)` / `Enrollment (K-12)`",
            difficulty="simple",
        )
        counts = [question.difficulty for question in suite.questions]
        assert [counts.count(level) for level in ("simple", "moderate", "challenging")] == [925, 464, 145]


def test_no_gold_is_reachable_from_the_questions(merit_data: Path) -> None:
    suite: Suite = load_suite("spider", merit_data)
    with suite.catalogue:
        golds = [item["query"] for item in json.loads((merit_data / "spider" / "dev.json").read_bytes())]
        text = repr(suite.questions)
        assert not any(gold in text for gold in golds)
        assert not any(gold in repr(suite) for gold in golds)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[{}]", r"question 0 has not the form of bird's \(KeyError\('db_id'\)\)"),
        (b'[{"db_id": "a", "question": "b"}]', "question 0 has not the form"),
        (b'[{"db_id": "a", "question": "b", "SQL": null}]', "SQL is NoneType, not text"),
        (b'[{"db_id": 7, "question": "b", "SQL": "c"}]', "db_id is int, not text"),
        (b'[{"db_id": "a", "question": ["b"], "SQL": "c"}]', "question is list, not text"),
        (b'[{"db_id": "a", "question": "b", "SQL": "c", "difficulty": 1}]', "difficulty is int, not text"),
        (
            b'[{"db_id": "a", "question": "b", "SQL": "c", "evidence": {}, "evidence": {"d": 1}}]',
            "evidence is dict, not text",
        ),
        (b"{}", "must hold an array of questions"),
        (b"[", "is no JSON text"),
        (b"\xff", "is no JSON text"),
        (b"[7]", "question 0 has not the form"),
    ],
)
def test_a_dataset_of_another_form_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "bird").mkdir()
    (tmp_path / "bird" / "dev.json").write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_suite("bird", tmp_path)


@pytest.mark.parametrize("parsed", [7, "select", [], {}, {"from": None}, {"from": {"conds": [3]}}])
def test_a_parsed_query_of_another_form_is_an_error(tmp_path: Path, parsed: object) -> None:
    (tmp_path / "spider").mkdir()
    item = {"db_id": "a", "question": "b", "query": "c", "sql": parsed}
    (tmp_path / "spider" / "dev.json").write_text(json.dumps([item]))
    with pytest.raises(DataError, match="question 0 has not the form of spider's"):
        load_suite("spider", tmp_path)


def test_a_question_without_a_difficulty_is_one_of_unknown_difficulty(tmp_path: Path) -> None:
    for name, gold in (("spider", "query"), ("bird", "SQL")):
        (tmp_path / name).mkdir()
        item = {"db_id": "shop", "question": "?", gold: "SELECT 1", "sql": None, "difficulty": None}
        (tmp_path / name / "dev.json").write_text(json.dumps([item]))
        with load_suite(name, tmp_path).catalogue:
            questions = load_suite(name, tmp_path).questions
        assert questions == (Question(id=0, database_id="shop", question="?", difficulty="unknown"),)


def test_missing_data_and_an_unknown_suite_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"spider/dev\.json cannot be read"):
        load_suite("spider", tmp_path)
    with pytest.raises(DataError, match="no suite is called 'wikisql'"):
        load_suite("wikisql", tmp_path)
