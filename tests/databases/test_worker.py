"""The layers inside the worker, each without those above it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from merit_sql.databases.pool import WorkerPool
from merit_sql.databases.sqlite import SqliteDatabase
from merit_sql.databases.worker import Request, _Databases, _Watch

WRITE = "UPDATE customer SET name = 'x'"


def request_for(database: SqliteDatabase, sql: str, mode: str = "ro") -> Request:
    return Request(
        "execute",
        f"file:{database.path}?mode={mode}",
        sql=sql,
        seconds=2,
        rows=100,
        result_bytes=100_000,
        cell_bytes=100_000,
    )


@pytest.fixture
def inside() -> Iterator[_Databases]:
    yield _Databases(_Watch())


@pytest.mark.parametrize(
    "sql",
    [
        WRITE,
        "DELETE FROM customer",
        "INSERT INTO customer VALUES (7, 'x', 'y')",
        "WITH a AS (SELECT 1) DELETE FROM customer",
        "CREATE TABLE x (y)",
        "CREATE TEMP TABLE x (y)",
        "CREATE TEMP VIEW x AS SELECT 1",
        "DROP TABLE customer",
        "ALTER TABLE customer ADD x",
        "ATTACH ':memory:' AS x",
        "ATTACH 'x.sqlite' AS x",
        "DETACH main",
        "PRAGMA query_only = OFF",
        "PRAGMA page_size = 512",
        "PRAGMA database_list",
        "BEGIN",
        "SAVEPOINT x",
        "ANALYZE",
        "REINDEX",
        "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM pragma_table_info('customer')",
        "SELECT * FROM dbstat",
        "SELECT * FROM fts3tokenize('simple', 'a b')",
    ],
)
def test_the_authorizer_refuses_what_the_gate_would_have(
    corner_shop: SqliteDatabase, pool: WorkerPool, sql: str
) -> None:
    (frame,) = pool.call(request_for(corner_shop, sql))
    assert frame[:2] == ("failed", "refused")


@pytest.mark.parametrize(
    "sql",
    ["VACUUM", "VACUUM INTO 'x.sqlite'", "SELECT 1; DELETE FROM customer", "EXPLAIN DELETE FROM customer"],
)
def test_what_the_authorizer_is_not_asked_about_fails_too(
    corner_shop: SqliteDatabase, pool: WorkerPool, sql: str
) -> None:
    (frame,) = pool.call(request_for(corner_shop, sql))
    assert frame[0] == "failed"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name FROM customer",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 3) SELECT sum(x) FROM n",
        "SELECT upper(name), row_number() OVER (ORDER BY id) FROM customer",
        "SELECT key FROM json_each('[1]')",
        "SELECT name FROM sqlite_master",
    ],
)
def test_the_authorizer_lets_reads_pass(corner_shop: SqliteDatabase, pool: WorkerPool, sql: str) -> None:
    assert pool.call(request_for(corner_shop, sql))[-1][0] == "done"


def test_query_only_holds_on_a_writable_file(corner_shop: SqliteDatabase, inside: _Databases) -> None:
    with (
        closing(inside.bare(request_for(corner_shop, WRITE, mode="rw"))) as connection,
        pytest.raises(sqlite3.OperationalError, match="attempt to write a readonly database"),
    ):
        connection.execute(WRITE)


def test_the_read_only_file_holds_without_query_only(corner_shop: SqliteDatabase, inside: _Databases) -> None:
    with closing(inside.bare(request_for(corner_shop, WRITE))) as connection:
        connection.execute("PRAGMA query_only = OFF")
        with pytest.raises(sqlite3.OperationalError, match="attempt to write a readonly database"):
            connection.execute(WRITE)


def test_nothing_can_be_attached_even_without_an_authorizer(
    corner_shop: SqliteDatabase, inside: _Databases
) -> None:
    with (
        closing(inside.bare(request_for(corner_shop, WRITE))) as connection,
        pytest.raises(sqlite3.OperationalError, match="too many attached databases"),
    ):
        connection.execute("ATTACH ':memory:' AS x")


def test_a_view_in_the_database_cannot_reach_a_denied_function(
    tmp_path_factory: pytest.TempPathFactory, pool: WorkerPool
) -> None:
    path = tmp_path_factory.mktemp("view") / "view.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIEW trap AS SELECT load_extension('x') AS loaded")
        connection.execute("CREATE VIEW plain AS SELECT 1 AS one")
    database = SqliteDatabase(path, database_id="view", pool=pool)
    assert database.execute("SELECT one FROM plain").rows == [(1,)]
    # `trusted_schema` answers before the authorizer is asked.
    assert database.execute("SELECT loaded FROM trap").error == "unsafe use of load_extension()"


def test_more_databases_than_stay_open(tmp_path_factory: pytest.TempPathFactory, pool: WorkerPool) -> None:
    folder = tmp_path_factory.mktemp("many")
    databases = []
    for number in range(70):
        path = folder / f"{number}.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE t (x)")
            connection.execute("INSERT INTO t VALUES (?)", (number,))
            connection.commit()
        databases.append(SqliteDatabase(path, database_id=str(number), pool=pool))
    for _ in range(2):
        assert [database.execute("SELECT x FROM t").rows for database in databases] == [
            [(number,)] for number in range(70)
        ]
