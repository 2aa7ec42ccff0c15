"""One SQLite database: its schema, and statements run on it in a worker that can be killed."""

import threading
from collections.abc import Callable
from pathlib import Path

from merit_sql.databases.gate import refusal
from merit_sql.databases.pool import Frame, WorkerDiedError, WorkerPool, WorkerTimeoutError
from merit_sql.databases.schemas import from_description
from merit_sql.databases.source import Source
from merit_sql.databases.worker import Request
from merit_sql.domain.errors import DataError
from merit_sql.domain.execution import REFUSED, Execution, Limits, TextDecoding, timeout_message
from merit_sql.domain.schema import Schema
from merit_sql.domain.status import Status

WORKER_DIED = "the query ended the process that ran it (out of memory?)"
"""Error text of a statement that took its worker down."""

NOT_FOUND = "database not found"
"""Begins the error text of a statement on a database whose file is gone."""

_DEFAULT_LIMITS = Limits()
_SCHEMA_SECONDS = 60.0


class SqliteDatabase:
    """A `domain.execution.Database` over one file, which is never written; safe to use from threads.

    `schema` is the schema itself, or what finds it when first asked; without one, or when it finds none,
    the database describes itself.
    """

    def __init__(
        self,
        path: Path,
        *,
        database_id: str,
        pool: WorkerPool,
        schema: Schema | Callable[[], Schema | None] | None = None,
    ) -> None:
        """The file at `path`, under the name `database_id`, its statements run by `pool`."""
        self._source = Source(Path(path), pool)
        self._database_id = database_id
        self._pool = pool
        self._schema = schema
        self._schema_lock = threading.Lock()

    def __repr__(self) -> str:
        return f"SqliteDatabase({str(self.path)!r}, database_id={self._database_id!r})"

    @property
    def path(self) -> Path:
        """The database's file."""
        return self._source.path

    @property
    def database_id(self) -> str:
        """The name that questions use for it."""
        return self._database_id

    @property
    def schema(self) -> Schema:
        """Tables, columns and keys; raises `DataError` when the database has to be read and cannot be."""
        with self._schema_lock:
            if not isinstance(self._schema, Schema):
                found = self._schema() if self._schema is not None else None
                self._schema = found if found is not None else self._described()
            return self._schema

    def execute(
        self,
        sql: str,
        *,
        limits: Limits | None = None,
        decoding: TextDecoding = TextDecoding.STRICT,
    ) -> Execution:
        """Run one read-only statement; every failure of the statement is data.

        Raises `DataError` for a file that cannot be read now (forbidden, locked) and `WorkerStartError`
        when no worker can be had: then nothing is known about the statement.
        """
        frames = self._run(Request("execute", ""), sql, limits or _DEFAULT_LIMITS, decoding)
        if isinstance(frames, Execution):
            return frames
        _, columns, rows, seconds = frames[-1]
        if len(frames) > 1:
            rows = [row for frame in frames[:-1] for row in frame[1]] + rows
        return Execution(status=Status.EXECUTED, columns=columns, rows=rows, seconds=seconds)

    def time(
        self,
        sql: str,
        *,
        repetitions: int,
        limits: Limits | None = None,
        fetch: bool = False,
        decoding: TextDecoding = TextDecoding.STRICT,
    ) -> list[float] | Execution:
        """Seconds of each of `repetitions` runs of one statement, or how it failed.

        Measured inside the worker, each on a fresh connection: execute alone, or with `fetch` execute,
        fetch of every row, and close. ``limits.seconds`` bounds all repetitions together.
        """
        request = Request("time", "", repetitions=repetitions, fetch=fetch)
        frames = self._run(request, sql, limits or _DEFAULT_LIMITS, decoding)
        if isinstance(frames, Execution):
            return frames
        seconds: list[float] = frames[-1][1]
        return seconds

    def fingerprint(self) -> str:
        """sha256 (hex) of the database's bytes; raises `DataError` when the file is gone."""
        try:
            return self._source.fingerprint()
        except OSError as error:
            raise DataError(f"{self.path}: the database cannot be read: {error.strerror}") from error

    def _run(
        self, request: Request, sql: str, limits: Limits, decoding: TextDecoding
    ) -> list[Frame] | Execution:
        """The frames of a statement that ran to its end, or how it failed."""
        refused = refusal(sql)
        if refused is not None:
            return _failed(refused)
        if limits.seconds <= 0:
            return _timed_out(limits, 0.0)
        try:
            opening = self._source.opening()
        except (FileNotFoundError, NotADirectoryError):
            return _failed(f"{NOT_FOUND}: {self._database_id}")
        full = request._replace(
            target=opening.uri,
            stamp=opening.stamp,
            sql=sql,
            seconds=float(limits.seconds),
            rows=limits.rows,
            result_bytes=limits.result_bytes,
            cell_bytes=limits.cell_bytes,
            lossy=decoding is TextDecoding.IGNORE,
        )
        try:
            frames = self._pool.call(full)
        except WorkerTimeoutError:
            return _timed_out(limits, limits.seconds)
        except WorkerDiedError:
            return _failed(WORKER_DIED)
        return self._failure(frames[-1], limits) if frames[-1][0] == "failed" else frames

    def _failure(self, frame: Frame, limits: Limits) -> Execution:
        _, kind, message, seconds = frame
        if kind == "timeout":
            return _timed_out(limits, seconds)
        if kind == "refused":
            return _failed(REFUSED, seconds)
        if kind == "file":
            raise DataError(f"{self.path}: {message}: see who holds the file, or whether its disk is well")
        return _failed(message.replace(str(self.path), self._database_id), seconds)

    def _described(self) -> Schema:
        try:
            opening = self._source.opening()
            request = Request("schema", opening.uri, opening.stamp, seconds=_SCHEMA_SECONDS)
            frame = self._pool.call(request)[-1]
        except (OSError, WorkerTimeoutError, WorkerDiedError) as error:
            raise DataError(f"{self.path}: the schema cannot be read: {error}") from error
        if frame[0] == "failed":
            raise DataError(f"{self.path}: the schema cannot be read: {frame[2]}")
        return from_description(self._database_id, frame[1])


def _failed(error: str, seconds: float = 0.0) -> Execution:
    return Execution(status=Status.EXECUTION_ERROR, error=error, seconds=seconds)


def _timed_out(limits: Limits, seconds: float) -> Execution:
    return Execution(status=Status.TIMEOUT, error=timeout_message(max(limits.seconds, 0.0)), seconds=seconds)
