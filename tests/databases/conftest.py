"""A small real database, and a way to see whether its folder was touched."""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from merit_sql.databases.pool import WorkerPool
from merit_sql.databases.sqlite import SqliteDatabase

Snapshot = Callable[[Path], dict[str, str]]

SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, town TEXT);
CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer(id), cents INTEGER);
CREATE INDEX by_town ON customer (town);
INSERT INTO customer VALUES (1, 'Ada', 'Bonn'), (2, 'Bo', NULL), (3, 'Cy', 'Bonn');
INSERT INTO purchase VALUES (10, 1, 250), (11, 1, 100), (12, 3, 999);
"""


@pytest.fixture(scope="session")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(2) as shared:
        yield shared


@pytest.fixture(scope="session")
def corner_shop(tmp_path_factory: pytest.TempPathFactory, pool: WorkerPool) -> SqliteDatabase:
    """Three customers, three purchases, alone in its folder."""
    path = tmp_path_factory.mktemp("shop") / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SHOP)
    return SqliteDatabase(path, database_id="shop", pool=pool)


@pytest.fixture(scope="session")
def snapshot() -> Snapshot:
    """Names and sha256 of all files in a folder."""

    def take(folder: Path) -> dict[str, str]:
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.iterdir())
            if path.is_file()
        }

    return take
