"""What all tests share."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from merit_sql.domain.episode import AttemptDict
from merit_sql.domain.status import Opinion, Status


@pytest.fixture(scope="session")
def merit_data() -> Path:
    """The folder with the real benchmarks, as `MERIT_DATA` names it."""
    named = os.environ.get("MERIT_DATA")
    if not named:
        pytest.skip("MERIT_DATA names no folder with the real benchmarks")
    return Path(named).resolve()


@pytest.fixture(scope="session")
def attempt() -> Callable[..., AttemptDict]:
    """Build an attempt: refuted with a mismatch and classified as such, unless told otherwise."""

    def build(step: int, sql: str, **changes: Any) -> AttemptDict:
        base: dict[str, Any] = {
            "step": step,
            "sql": sql,
            "status": Status.DENOTATION_MISMATCH.value,
            "error": None,
            "failure": {"type": "Result Mismatch", "subtype": "Unknown", "decided_by": ""},
            "opinion": Opinion.REFUTED.value,
            "confirmed_by": None,
            "official": 0.0,
            "strict": 0,
            "repeat_of": None,
            "draw": 0,
            "memory_ids": [],
            "memories": [],
            "usage": {"prompt_tokens": 100, "output_tokens": 10},
            "finish_reason": "stop",
            "dropped": [],
        }
        return AttemptDict(**{**base, **changes})

    return build


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A small SQLite file: three customers and four orders, one of them of nobody."""
    path = tmp_path / "shop" / "shop.sqlite"
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.executescript(
            """
            CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
            CREATE TABLE purchase (
                id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer(id), cents INTEGER
            );
            INSERT INTO customer VALUES (1, 'Ada', 'Turin'), (2, 'Bo', 'Oslo'), (3, 'Cy', NULL);
            INSERT INTO purchase VALUES (1, 1, 500), (2, 1, 250), (3, 2, 125), (4, NULL, 75);
            """
        )
    connection.close()
    return path
