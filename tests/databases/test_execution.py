"""Statements run for real: what they return, what hostile ones come to, and that no byte ever changes."""

import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merit_sql.databases.pool import GRACE_SECONDS, WorkerPool
from merit_sql.databases.sqlite import WORKER_DIED, SqliteDatabase
from merit_sql.databases.worker import Request
from merit_sql.domain.errors import DataError, MeritError
from merit_sql.domain.execution import EMPTY_REPLY, REFUSED, Execution, Limits, TextDecoding
from merit_sql.domain.status import Status

Snapshot = Callable[[Path], dict[str, str]]

SHORT = Limits(seconds=0.5, rows=10**9)
"""So many rows that a fast machine does not reach them before the deadline."""
NEXT = "SELECT name FROM customer ORDER BY id"
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
EVERYTHING = ", ".join(f"purchase p{i}" for i in range(25))
# instr compares byte by byte inside one step of SQLite: no progress handler sees it.
DEAF = "SELECT instr(hex(zeroblob(4000000)), hex(zeroblob(1000000)) || '1')"


def test_rows_columns_and_seconds(corner_shop: SqliteDatabase) -> None:
    execution = corner_shop.execute("SELECT id, name, town AS place FROM customer ORDER BY id;")
    assert execution.status is Status.EXECUTED
    assert execution.ok
    assert execution.error is None
    assert execution.columns == ("id", "name", "place")
    assert execution.rows == [(1, "Ada", "Bonn"), (2, "Bo", None), (3, "Cy", "Bonn")]
    assert 0 < execution.seconds < 5


def test_every_kind_of_cell_arrives_as_it_is(corner_shop: SqliteDatabase) -> None:
    sql = "SELECT 9223372036854775807, -1.5, 1e999, 'ü\U0001f600', x'00ff', NULL, ''"
    rows = corner_shop.execute(sql).rows
    assert rows == [(2**63 - 1, -1.5, float("inf"), "ü\U0001f600", b"\x00\xff", None, "")]


def test_an_empty_result_still_has_its_columns(corner_shop: SqliteDatabase) -> None:
    execution = corner_shop.execute("SELECT name FROM customer WHERE 0")
    assert (execution.columns, execution.rows, execution.ok) == (("name",), [], True)


def test_rows_arrive_in_order_across_frames(corner_shop: SqliteDatabase) -> None:
    for count in (255, 256, 257, 10_000):
        execution = corner_shop.execute(f"{ENDLESS} SELECT x FROM n LIMIT {count}")
        assert execution.rows == [(x,) for x in range(1, count + 1)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT nope FROM customer", "no such column: nope"),
        ("SELECT * FROM nope", "no such table: nope"),
        ("SELECT nope(1)", "no such function: nope"),
        ("SELECT id FROM customer, purchase", "ambiguous column name: id"),
        ("SELECT FROM customer", 'near "FROM": syntax error'),
        ("SELECT name FROM customer WHERE", "incomplete input"),
        ("SELECT 'open", 'unrecognized token: "\'open"'),
        ("SELECT sum(count(*)) FROM customer", "misuse of aggregate function count()"),
        ("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "parser stack overflow"),
        ("SELECT '\udc80'", "unrecognized token: '\\udc80'"),
    ],
    ids=lambda value: value[:30],
)
def test_sqlite_speaks_for_itself(corner_shop: SqliteDatabase, sql: str, message: str) -> None:
    execution = corner_shop.execute(sql)
    assert execution.status is Status.EXECUTION_ERROR
    assert execution.error == message
    assert not execution.rows


HOSTILE: list[tuple[str, Status, str | None]] = [
    (f"{ENDLESS} SELECT count(*) FROM n", Status.TIMEOUT, "timed out after 0.5 s"),
    (f"{ENDLESS} SELECT x FROM n", Status.TIMEOUT, "timed out after 0.5 s"),
    (f"{ENDLESS} SELECT x FROM n ORDER BY x DESC", Status.TIMEOUT, "timed out after 0.5 s"),
    (f"SELECT count(*) FROM {EVERYTHING}", Status.TIMEOUT, "timed out after 0.5 s"),
    (f"SELECT * FROM {EVERYTHING}", Status.TIMEOUT, "timed out after 0.5 s"),
    ("SELECT printf('%.*c', 1000000000, 'x')", Status.TIMEOUT, "timed out after 0.5 s"),
    ("SELECT zeroblob(1000000000)", Status.EXECUTION_ERROR, "string or blob too big"),
    ("SELECT zeroblob(1e9)", Status.EXECUTION_ERROR, "string or blob too big"),
    ("SELECT randomblob(1000000000)", Status.EXECUTION_ERROR, "string or blob too big"),
    ("SELECT hex(zeroblob(16000000))", Status.EXECUTION_ERROR, "string or blob too big"),
    (
        "SELECT hex(zeroblob(400000)) LIKE '%' || replace(hex(zeroblob(10000)), '00', '0_') || '1'",
        Status.TIMEOUT,
        "timed out after 0.5 s",
    ),
    (DEAF, Status.TIMEOUT, "timed out after 0.5 s"),
    ("SELECT load_extension('x')", Status.EXECUTION_ERROR, REFUSED),
    ("SELECT readfile('shop.sqlite')", Status.EXECUTION_ERROR, REFUSED),
    ("SELECT writefile('stolen', name) FROM customer", Status.EXECUTION_ERROR, REFUSED),
    ("ATTACH 'other.sqlite' AS other", Status.EXECUTION_ERROR, REFUSED),
    ("VACUUM INTO 'copy.sqlite'", Status.EXECUTION_ERROR, REFUSED),
    ("VACUUM", Status.EXECUTION_ERROR, REFUSED),
    ("PRAGMA user_version = 7", Status.EXECUTION_ERROR, REFUSED),
    ("PRAGMA journal_mode = WAL", Status.EXECUTION_ERROR, REFUSED),
    ("SELECT * FROM pragma_journal_mode('WAL')", Status.EXECUTION_ERROR, REFUSED),
    ("WITH a AS (SELECT 1) DELETE FROM customer", Status.EXECUTION_ERROR, REFUSED),
    ("SELECT 1 -- harmless\n; DELETE FROM customer", Status.EXECUTION_ERROR, REFUSED),
    ("SELECT 1 /* harmless */; DELETE FROM customer --", Status.EXECUTION_ERROR, REFUSED),
    ("DROP TABLE customer", Status.EXECUTION_ERROR, REFUSED),
    ("-- nothing at all", Status.EXECUTION_ERROR, EMPTY_REPLY),
    ("SELECT '\x00'; DROP TABLE customer", Status.EXECUTION_ERROR, REFUSED),
    ("SELECT '\x00'", Status.EXECUTION_ERROR, "the query contains a null character"),
    ("SELECT '" + "x" * 2_000_000 + "'", Status.EXECUTION_ERROR, "query string is too large"),
]


@pytest.mark.parametrize(("sql", "status", "error"), HOSTILE, ids=lambda value: str(value)[:40])
def test_hostile_statements(
    corner_shop: SqliteDatabase, snapshot: Snapshot, sql: str, status: Status, error: str
) -> None:
    folder = corner_shop.path.parent
    before = snapshot(folder)
    started = time.monotonic()
    execution = corner_shop.execute(sql, limits=SHORT)
    assert time.monotonic() - started < SHORT.seconds + GRACE_SECONDS + 10
    assert (execution.status, execution.error) == (status, error)
    assert not execution.rows
    assert snapshot(folder) == before
    assert corner_shop.execute(NEXT).rows == [("Ada",), ("Bo",), ("Cy",)]


def test_memory_has_an_end(corner_shop: SqliteDatabase) -> None:
    wide = ", ".join("CAST(zeroblob(900000000) AS TEXT)" for _ in range(3))
    execution = corner_shop.execute(f"SELECT {wide}", limits=Limits(seconds=120, cell_bytes=950_000_000))
    assert execution.status is Status.EXECUTION_ERROR
    assert execution.error == "out of memory"
    assert corner_shop.execute(NEXT).ok


def test_a_worker_that_dies_takes_down_its_statement_alone(corner_shop: SqliteDatabase) -> None:
    with WorkerPool(1) as pool:
        database = SqliteDatabase(corner_shop.path, database_id="shop", pool=pool)
        assert database.execute(NEXT).ok
        (running,) = pool._running
        killer = threading.Timer(0.3, running._process.kill)
        killer.start()
        execution = database.execute(DEAF, limits=Limits(seconds=20))
        killer.join()
        assert (execution.status, execution.error) == (Status.EXECUTION_ERROR, WORKER_DIED)
        assert database.execute(NEXT).ok


def test_a_row_limit_is_exact(corner_shop: SqliteDatabase) -> None:
    sql = f"{ENDLESS} SELECT x FROM n LIMIT 1000"
    assert len(corner_shop.execute(sql, limits=Limits(rows=1000)).rows) == 1000
    execution = corner_shop.execute(sql, limits=Limits(rows=999))
    assert execution.status is Status.EXECUTION_ERROR
    assert execution.error == "result larger than 999 rows"


def test_an_endless_result_stops_at_the_row_limit(corner_shop: SqliteDatabase) -> None:
    execution = corner_shop.execute(f"{ENDLESS} SELECT x FROM n", limits=Limits(seconds=20, rows=5_000))
    assert execution.error == "result larger than 5000 rows"
    assert execution.seconds < 10


def test_a_byte_limit_bounds_the_whole_result(corner_shop: SqliteDatabase) -> None:
    sql = f"{ENDLESS} SELECT hex(zeroblob(500)) FROM n LIMIT 1000"
    assert corner_shop.execute(sql, limits=Limits(result_bytes=1_100_000)).ok
    execution = corner_shop.execute(sql, limits=Limits(result_bytes=900_000))
    assert execution.status is Status.EXECUTION_ERROR
    assert execution.error == "result larger than 900000 bytes"


def test_a_cell_limit_bounds_each_value(corner_shop: SqliteDatabase) -> None:
    assert corner_shop.execute("SELECT hex(zeroblob(500))", limits=Limits(cell_bytes=1_500)).ok
    execution = corner_shop.execute("SELECT hex(zeroblob(1000))", limits=Limits(cell_bytes=1_500))
    assert execution.error == "string or blob too big"


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_no_time_left_is_a_timeout_without_running(corner_shop: SqliteDatabase, seconds: float) -> None:
    execution = corner_shop.execute(NEXT, limits=Limits(seconds=seconds))
    assert (execution.status, execution.error) == (Status.TIMEOUT, "timed out after 0 s")


@pytest.fixture(scope="module")
def latin(tmp_path_factory: pytest.TempPathFactory, pool: WorkerPool) -> SqliteDatabase:
    """One row whose text is Latin-1, under a column and in a table that are plain."""
    path = tmp_path_factory.mktemp("latin") / "latin.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE word (id INTEGER, text TEXT)")
        connection.execute("INSERT INTO word VALUES (1, CAST(x'63616665e973' AS TEXT)), (2, 'é')")
        connection.commit()
    return SqliteDatabase(path, database_id="latin", pool=pool)


def test_strict_decoding_makes_undecodable_text_an_error(latin: SqliteDatabase) -> None:
    execution = latin.execute("SELECT text FROM word")
    assert execution.status is Status.EXECUTION_ERROR
    assert execution.error is not None
    assert execution.error.startswith("Could not decode to UTF-8 column 'text'")
    assert latin.execute("SELECT text FROM word WHERE id = 2").rows == [("é",)]


def test_lossy_decoding_drops_the_bad_bytes(latin: SqliteDatabase) -> None:
    execution = latin.execute("SELECT text FROM word ORDER BY id", decoding=TextDecoding.IGNORE)
    assert execution.rows == [("cafes",), ("é",)]


def test_decoding_belongs_to_the_request_not_to_the_connection(latin: SqliteDatabase) -> None:
    sql = "SELECT text FROM word WHERE id = 1"
    outcomes = [
        latin.execute(sql, decoding=decoding).ok
        for decoding in (TextDecoding.IGNORE, TextDecoding.STRICT, TextDecoding.IGNORE)
    ]
    assert outcomes == [True, False, True]


def test_json_tables_and_full_text_indexes_can_be_read(tmp_path: Path, pool: WorkerPool) -> None:
    path = tmp_path / "notes.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE VIRTUAL TABLE four USING fts4(body); INSERT INTO four VALUES ('red fox');"
            "CREATE VIRTUAL TABLE five USING fts5(body); INSERT INTO five VALUES ('blue fox');"
            "CREATE VIRTUAL TABLE box USING rtree(id, low, high); INSERT INTO box VALUES (1, 2, 3);"
        )
    database = SqliteDatabase(path, database_id="notes", pool=pool)
    for sql, row in (
        ("SELECT body FROM four WHERE four MATCH 'fox'", ("red fox",)),
        ("SELECT body FROM five WHERE five MATCH 'fox'", ("blue fox",)),
        ("SELECT id FROM box WHERE low < 3", (1,)),
        ("SELECT sum(value) FROM json_each('[1, 2]')", (3,)),
    ):
        assert database.execute(sql).rows == [row], sql
        timed = database.time(sql, repetitions=2)
        assert not isinstance(timed, Execution), (sql, timed)


def test_repeated_runs_are_timed_one_by_one(corner_shop: SqliteDatabase) -> None:
    sql = f"{ENDLESS} SELECT x FROM n LIMIT 20000"
    first_row_only = corner_shop.time(sql, repetitions=5)
    every_row = corner_shop.time(sql, repetitions=5, fetch=True)
    assert isinstance(first_row_only, list)
    assert isinstance(every_row, list)
    assert len(first_row_only) == len(every_row) == 5
    assert min(first_row_only) > 0
    assert min(every_row) > 5 * min(first_row_only)


def test_timing_fails_as_execution_does(corner_shop: SqliteDatabase) -> None:
    for sql, status, error in (
        ("SELECT nope", Status.EXECUTION_ERROR, "no such column: nope"),
        ("DELETE FROM customer", Status.EXECUTION_ERROR, REFUSED),
        (f"{ENDLESS} SELECT count(*) FROM n", Status.TIMEOUT, "timed out after 0.5 s"),
        (DEAF, Status.TIMEOUT, "timed out after 0.5 s"),
    ):
        execution = corner_shop.time(sql, repetitions=3, limits=SHORT)
        assert isinstance(execution, Execution)
        assert (execution.status, execution.error) == (status, error)


def test_the_deadline_of_timing_covers_all_repetitions(corner_shop: SqliteDatabase) -> None:
    sql = f"{ENDLESS} SELECT count(*) FROM (SELECT x FROM n LIMIT 100000)"
    execution = corner_shop.time(sql, repetitions=100_000, limits=SHORT)
    assert isinstance(execution, Execution)
    assert execution.status is Status.TIMEOUT


def test_threads_share_a_pool_and_get_their_own_rows(corner_shop: SqliteDatabase) -> None:
    def ask(number: int) -> bool:
        sql = f"{ENDLESS} SELECT x + {number} FROM n LIMIT 300"
        return corner_shop.execute(sql).rows == [(x + number,) for x in range(1, 301)]

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(200)))


def test_a_stuck_statement_does_not_hold_up_other_threads(corner_shop: SqliteDatabase) -> None:
    with ThreadPoolExecutor(2) as threads:
        stuck = threads.submit(corner_shop.execute, DEAF, limits=Limits(seconds=2))
        assert corner_shop.execute(NEXT).ok
        assert not stuck.done()
        assert stuck.result().status is Status.TIMEOUT


def test_a_missing_file_is_the_database_not_found(tmp_path: Path, pool: WorkerPool) -> None:
    database = SqliteDatabase(tmp_path / "gone.sqlite", database_id="gone", pool=pool)
    execution = database.execute("SELECT 1")
    assert (execution.status, execution.error) == (Status.EXECUTION_ERROR, "database not found: gone")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(MeritError, match=r"gone\.sqlite"):
        database.fingerprint()


def test_a_file_that_another_program_has_locked_says_nothing_about_the_statement(
    tmp_path: Path, pool: WorkerPool
) -> None:
    path = tmp_path / "busy.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("CREATE TABLE t (x)")
        writer.execute("BEGIN EXCLUSIVE")
        database = SqliteDatabase(path, database_id="busy", pool=pool)
        with pytest.raises(DataError, match=r"busy\.sqlite: database is locked"):
            database.execute("SELECT x FROM t")
        writer.execute("COMMIT")
        assert database.execute("SELECT x FROM t").rows == []


def test_a_file_that_is_no_database_is_an_error_without_its_path(tmp_path: Path, pool: WorkerPool) -> None:
    path = tmp_path / "text.sqlite"
    path.write_text("hello " * 1000)
    execution = SqliteDatabase(path, database_id="text", pool=pool).execute("SELECT * FROM t")
    assert execution.error == "file is not a database"


WRITES = st.sampled_from(
    [
        "DELETE FROM customer",
        "UPDATE customer SET name = 'x'",
        "INSERT INTO customer VALUES (9, 'x', 'y')",
        "DROP TABLE purchase",
        "CREATE TABLE x AS SELECT 1",
        "CREATE TEMP TABLE x AS SELECT 1",
        "ATTACH '{folder}/new.sqlite' AS new",
        "VACUUM INTO '{folder}/new.sqlite'",
        "PRAGMA user_version = 7",
        "PRAGMA journal_mode = WAL",
        "PRAGMA query_only = OFF",
        "PRAGMA writable_schema = ON",
        "REINDEX",
        "ANALYZE",
        "BEGIN EXCLUSIVE",
        "SELECT load_extension('{folder}/x.so')",
        "SELECT * FROM customer",
    ]
)
WRAPPERS = st.sampled_from(
    ["{}", "WITH a AS (SELECT 1) {}", "SELECT 1; {}", "SELECT ({})", "/* */ {} --", "{};"]
)


@settings(max_examples=80, deadline=None)
@given(write=WRITES, wrapper=WRAPPERS, behind_the_gate=st.booleans())
def test_whatever_the_statement_no_byte_of_the_folder_changes(
    corner_shop: SqliteDatabase,
    pool: WorkerPool,
    snapshot: Snapshot,
    write: str,
    wrapper: str,
    behind_the_gate: bool,
) -> None:
    folder = corner_shop.path.parent
    before = snapshot(folder)
    sql = wrapper.format(write.format(folder=folder))
    if behind_the_gate:
        pool.call(
            Request(
                "execute",
                f"file:{corner_shop.path}?mode=ro",
                sql=sql,
                seconds=2,
                rows=10,
                result_bytes=1000,
                cell_bytes=1000,
            )
        )
    else:
        corner_shop.execute(sql, limits=SHORT)
    assert snapshot(folder) == before
    assert corner_shop.execute(NEXT).rows == [("Ada",), ("Bo",), ("Cy",)]


def test_a_limit_that_is_no_number_is_refused() -> None:
    with pytest.raises(MeritError, match="nan"):
        Limits(seconds=float("nan"))
