"""Files of every kind are read without a trace: WAL mode, live logs, dead writers, odd names, links."""

import hashlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from merit_sql.databases.pool import WorkerPool
from merit_sql.databases.sqlite import SqliteDatabase

Snapshot = Callable[[Path], dict[str, str]]


def write(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_a_database_in_wal_mode_gets_no_log_beside_it(
    tmp_path: Path, pool: WorkerPool, snapshot: Snapshot
) -> None:
    path = tmp_path / "wal.sqlite"
    write(path, "PRAGMA journal_mode = WAL", "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)")
    assert path.read_bytes()[18:20] == b"\x02\x02"
    before = snapshot(tmp_path)
    assert list(before) == ["wal.sqlite"]
    database = SqliteDatabase(path, database_id="wal", pool=pool)
    assert database.execute("SELECT x FROM t").rows == [(1,)]
    assert [table.name for table in database.schema.tables] == ["t"]
    assert snapshot(tmp_path) == before


def test_a_live_log_is_read_from_a_private_copy(tmp_path: Path, pool: WorkerPool, snapshot: Snapshot) -> None:
    path = tmp_path / "live.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (x)")
        writer.execute("INSERT INTO t VALUES (1)")
        before = snapshot(tmp_path)
        assert sorted(before) == ["live.sqlite", "live.sqlite-shm", "live.sqlite-wal"]
        database = SqliteDatabase(path, database_id="live", pool=pool)
        assert database.execute("SELECT x FROM t").rows == [(1,)]
        assert snapshot(tmp_path) == before
        first = database.fingerprint()
        writer.execute("INSERT INTO t VALUES (2)")
        before = snapshot(tmp_path)
        assert database.execute("SELECT x FROM t").rows == [(1,), (2,)]
        assert snapshot(tmp_path) == before
        assert database.fingerprint() != first


def test_an_empty_log_beside_a_database_stays_empty(
    tmp_path: Path, pool: WorkerPool, snapshot: Snapshot
) -> None:
    path = tmp_path / "plain.sqlite"
    write(path, "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)")
    (tmp_path / "plain.sqlite-wal").touch()
    before = snapshot(tmp_path)
    database = SqliteDatabase(path, database_id="plain", pool=pool)
    assert database.execute("SELECT x FROM t").rows == [(1,)]
    assert snapshot(tmp_path) == before


def test_what_a_dead_writer_left_half_done_is_rolled_back_in_a_copy(
    tmp_path: Path, pool: WorkerPool, snapshot: Snapshot
) -> None:
    live, dead = tmp_path / "live.sqlite", tmp_path / "dead" / "dead.sqlite"
    write(live, "CREATE TABLE t (x, filler)", "INSERT INTO t VALUES (1, hex(zeroblob(4000)))")
    dead.parent.mkdir()
    with closing(sqlite3.connect(live, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN")
        writer.execute("UPDATE t SET x = 2")
        writer.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50)"
            " INSERT INTO t SELECT 3, hex(zeroblob(4000)) FROM n"
        )
        shutil.copyfile(live, dead)
        shutil.copyfile(f"{live}-journal", f"{dead}-journal")
        writer.execute("ROLLBACK")
    assert Path(f"{dead}-journal").read_bytes()[:1] not in {b"", b"\0"}
    before = snapshot(dead.parent)
    database = SqliteDatabase(dead, database_id="dead", pool=pool)
    assert database.execute("SELECT x FROM t").rows == [(1,)]
    assert snapshot(dead.parent) == before


def test_a_file_that_is_replaced_is_read_anew(tmp_path: Path, pool: WorkerPool) -> None:
    path, other = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    write(path, "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)")
    write(other, "CREATE TABLE t (x)", "INSERT INTO t VALUES (2)")
    database = SqliteDatabase(path, database_id="a", pool=pool)
    assert database.execute("SELECT x FROM t").rows == [(1,)]
    first = database.fingerprint()
    other.replace(path)
    assert database.execute("SELECT x FROM t").rows == [(2,)]
    assert database.fingerprint() != first


@pytest.mark.parametrize(
    "name", ["with space.sqlite", "what?mode=rw#x.sqlite", "100%25.sqlite", "größe.sqlite", "a&b=c;d.sqlite"]
)
def test_names_that_mean_something_in_a_uri(
    tmp_path: Path, pool: WorkerPool, snapshot: Snapshot, name: str
) -> None:
    write(tmp_path / name, "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)")
    before = snapshot(tmp_path)
    database = SqliteDatabase(tmp_path / name, database_id="odd", pool=pool)
    assert database.execute("SELECT x FROM t").rows == [(1,)]
    assert snapshot(tmp_path) == before == {name: database.fingerprint()}


def test_a_link_is_followed_to_where_the_log_lies(tmp_path: Path, pool: WorkerPool) -> None:
    real, link = tmp_path / "real" / "real.sqlite", tmp_path / "links" / "link.sqlite"
    real.parent.mkdir()
    link.parent.mkdir()
    link.symlink_to(real)
    with closing(sqlite3.connect(real, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (x)")
        writer.execute("INSERT INTO t VALUES (1)")
        database = SqliteDatabase(link, database_id="link", pool=pool)
        assert database.execute("SELECT x FROM t").rows == [(1,)]
    assert [path.name for path in link.parent.iterdir()] == ["link.sqlite"]


def test_a_fingerprint_is_the_hash_of_the_file(corner_shop: SqliteDatabase) -> None:
    assert corner_shop.fingerprint() == hashlib.sha256(corner_shop.path.read_bytes()).hexdigest()


def test_the_locks_of_a_connection_in_the_same_process_hold(tmp_path: Path, pool: WorkerPool) -> None:
    path = tmp_path / "busy.sqlite"
    write(path, "CREATE TABLE t (x)")
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        database = SqliteDatabase(path, database_id="busy", pool=pool)
        assert database.execute("SELECT x FROM t").rows == []
        database.fingerprint()
        script = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
        second = subprocess.run(
            [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
        )
        assert "database is locked" in second.stderr


def test_private_copies_are_gone_when_nobody_needs_them(
    tmp_path: Path, pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    path = tmp_path / "live.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (x)")
        database = SqliteDatabase(path, database_id="live", pool=pool)
        assert database.execute("SELECT x FROM t").ok
        writer.execute("INSERT INTO t VALUES (1)")
        assert database.execute("SELECT x FROM t").ok
        assert len(list(scratch.iterdir())) == 1
        del database
        assert list(scratch.iterdir()) == []
