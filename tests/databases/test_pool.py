"""Worker processes: they start late, come back after a kill, and end with the process that uses them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from merit_sql.databases.pool import WorkerPool
from merit_sql.databases.sqlite import SqliteDatabase
from merit_sql.domain.errors import MeritError
from merit_sql.domain.status import Status

DEAF = "SELECT instr(hex(zeroblob(4000000)), hex(zeroblob(1000000)) || '1')"


def alive(pid: int) -> bool:
    """Whether a process runs: a zombie that nobody collects does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def pids(pool: WorkerPool) -> set[int]:
    return {running.pid for running in pool._running}


def test_nothing_starts_before_the_first_statement(corner_shop: SqliteDatabase) -> None:
    with WorkerPool(3) as pool:
        database = SqliteDatabase(corner_shop.path, database_id="shop", pool=pool)
        assert pids(pool) == set()
        for _ in range(3):
            assert database.execute("SELECT 1").ok
        assert len(pids(pool)) == 1


def test_closing_ends_the_workers_and_the_next_statement_starts_one(corner_shop: SqliteDatabase) -> None:
    pool = WorkerPool()
    database = SqliteDatabase(corner_shop.path, database_id="shop", pool=pool)
    assert database.execute("SELECT 1").ok
    (pid,) = pids(pool)
    pool.close()
    assert not alive(pid)
    assert database.execute("SELECT 1").ok
    pool.close()
    pool.close()


def test_workers_that_were_ended_while_idle_are_replaced_unnoticed(corner_shop: SqliteDatabase) -> None:
    with WorkerPool() as pool:
        database = SqliteDatabase(corner_shop.path, database_id="shop", pool=pool)
        assert database.execute("SELECT 1").ok
        (pid,) = pids(pool)
        os.kill(pid, signal.SIGKILL)
        assert wait_until(lambda: not alive(pid))
        assert database.execute("SELECT 2").rows == [(2,)]
        assert pids(pool) != {pid}


def test_a_worker_that_ends_before_it_takes_a_request_passes_it_on(corner_shop: SqliteDatabase) -> None:
    with WorkerPool() as pool, ThreadPoolExecutor(1) as thread:
        database = SqliteDatabase(corner_shop.path, database_id="shop", pool=pool)
        assert database.execute("SELECT 1").ok
        (pid,) = pids(pool)
        os.kill(pid, signal.SIGSTOP)
        answer = thread.submit(database.execute, "SELECT 2")
        with pytest.raises(TimeoutError):
            answer.result(timeout=0.2)
        os.kill(pid, signal.SIGKILL)
        assert answer.result(timeout=30).rows == [(2,)]
        assert pids(pool) != {pid}


def test_a_worker_that_ends_at_work_fails_its_statement_and_is_not_asked_again(
    corner_shop: SqliteDatabase,
) -> None:
    with WorkerPool() as pool, ThreadPoolExecutor(1) as thread:
        database = SqliteDatabase(corner_shop.path, database_id="shop", pool=pool)
        assert database.execute("SELECT 1").ok
        (pid,) = pids(pool)
        answer = thread.submit(database.execute, DEAF)
        with pytest.raises(TimeoutError):
            answer.result(timeout=0.5)
        os.kill(pid, signal.SIGKILL)
        assert answer.result(timeout=30).status is Status.EXECUTION_ERROR
        assert pids(pool) == set()


def test_an_interrupted_caller_leaves_no_stale_answer(
    corner_shop: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with WorkerPool() as pool:
        database = SqliteDatabase(corner_shop.path, database_id="shop", pool=pool)
        assert database.execute("SELECT 1").ok
        (running,) = pool._running

        def interrupted(_: float) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(running, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            database.execute("SELECT 'stale'")
        assert database.execute("SELECT 'fresh'").rows == [("fresh",)]


def test_a_pool_of_none_is_refused() -> None:
    with pytest.raises(MeritError, match="1 or more"):
        WorkerPool(0)


SCRIPT = """
import os, sys, threading, time
from pathlib import Path
from merit_sql.databases.pool import WorkerPool
from merit_sql.databases.sqlite import SqliteDatabase
from merit_sql.domain.execution import Limits
pool = WorkerPool()
database = SqliteDatabase(Path(sys.argv[1]), database_id="shop", pool=pool)
assert database.execute("SELECT 1").ok
print(*(running.pid for running in pool._running), flush=True)
"""


@pytest.mark.parametrize(
    "sql",
    [None, DEAF, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"],
    ids=["idle", "deaf", "busy"],
)
def test_a_worker_ends_with_its_parent(corner_shop: SqliteDatabase, sql: str | None) -> None:
    work = "time.sleep(60)" if sql is None else f"database.execute({sql!r}, limits=Limits(seconds=60))"
    parent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT + work, str(corner_shop.path)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(0.3)
    assert alive(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert wait_until(lambda: not alive(pid))


def test_a_pool_that_nobody_closed_ends_quietly_with_the_program(corner_shop: SqliteDatabase) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(corner_shop.path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert not alive(int(done.stdout))


def test_a_forked_process_has_workers_of_its_own(corner_shop: SqliteDatabase) -> None:
    fork = """
child = os.fork()
if child == 0:
    ok = all(database.execute(f"SELECT {i}").rows == [(i,)] for i in range(50))
    pool.close()
    os._exit(0 if ok else 1)
assert all(database.execute(f"SELECT -{i}").rows == [(-i,)] for i in range(1, 50))
assert os.waitpid(child, 0)[1] == 0
assert database.execute("SELECT 1").ok
"""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + fork, str(corner_shop.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
