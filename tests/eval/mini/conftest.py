"""What the hand-worked answers share: the suite's CSV rows, and the comparison with its gold queries."""

import csv
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from importlib.resources import as_file, files
from typing import Any

import pytest

from merit_sql.eval.suites import mini_questions
from merit_sql.eval.suites.build import build_mini

COLUMN = re.compile(r'^  (?:"([^"]+)"|(\w+)) (INTEGER|REAL|TEXT)\b', re.MULTILINE)
CONVERT: dict[str, Callable[[str], Any]] = {"INTEGER": int, "REAL": float, "TEXT": str}


@pytest.fixture(scope="session")
def tables() -> Callable[[str], dict[str, list[dict[str, Any]]]]:
    """The rows of a database's CSV files, by table; typed by the DDL's text, NULL as None. No SQLite."""

    def read(database: str) -> dict[str, list[dict[str, Any]]]:
        with as_file(files("merit_sql.eval.suites") / "mini" / database) as folder:
            ddl = (folder / "schema.sql").read_text(encoding="utf-8")
            kinds = {quoted or plain: CONVERT[kind] for quoted, plain, kind in COLUMN.findall(ddl)}
            rows: dict[str, list[dict[str, Any]]] = {}
            for path in folder.glob("*.csv"):
                with path.open(encoding="utf-8", newline="") as file:
                    rows[path.stem] = [
                        {name: None if text == r"\N" else kinds[name](text) for name, text in line.items()}
                        for line in csv.DictReader(file)
                    ]
        return rows

    return read


@pytest.fixture(scope="session")
def check(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, Iterable[tuple[Any, ...]]], None]:
    """Asserts that a question's gold returns just these rows: in this order where the gold orders them."""
    folder = build_mini(tmp_path_factory.mktemp("mini") / "databases")
    questions = {question["id"]: question for question in mini_questions()}

    def compare(number: int, expected: Iterable[tuple[Any, ...]]) -> None:
        question = questions[number]
        path = folder / question["db_id"] / f"{question['db_id']}.sqlite"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            actual = connection.execute(question["query"]).fetchall()
        if "order by" in question["query"].lower():
            assert actual == list(expected), question["question"]
        else:
            assert Counter(actual) == Counter(expected), question["question"]

    return compare
