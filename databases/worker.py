"""The process that runs SQL: started by path with a bare interpreter, it imports nothing of this package.

It speaks frames over its standard input and output: eight bytes of length, then a marshalled tuple. A request
is a `Request`'s fields; each answer is a frame ``("taken",)`` before anything is done about it, then one or
more frames whose first item says what follows:

- ``("rows", rows)``: some rows; more frames follow;
- ``("done", columns, rows, seconds)``: the last rows of a statement that ran to its end;
- ``("data", value)``: the answer to `time`, `schema`, `heads` and `hash`;
- ``("failed", kind, message, seconds)``: `kind` is refused, timeout, memory, error, or file when it is not
  the statement but the file that failed.

What holds here whatever the SQL: the file is opened ``mode=ro`` with `query_only`; an authorizer allows
reads alone; no file can grow, memory is capped, and the process ends with its parent, busy or not.
"""

import _thread
import contextlib
import io
import marshal
import math
import os
import resource
import select
import sqlite3
import struct
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

ADDRESS_SPACE = 2 * 2**30
"""Bytes of address space a worker may have: Python and SQLite take 50 MiB of it, a result within
`Limits` and its copy for the pipe a few hundred; what is left is for sorts and temporary tables."""

SQL_BYTES = 1_000_000
"""Longest statement SQLite is asked to read."""

HEADER = struct.Struct("<Q")
MARSHAL_VERSION = 2
"""The last version that looks for no shared references, which costs more than it saves here."""

_OPEN_DATABASES = 64
_HEAD_BYTES = 20
_PAGE_CACHE_KIB = 8192
_ROWS_A_FRAME = 256
_STEPS_BETWEEN_LOOKS = 10_000
_LARGEST_CELL = 1_000_000_000
_LOCK_WAIT_SECONDS = 2.0
_JSON_TABLES = ("json_each", "json_tree")

DENIED_FUNCTIONS = frozenset(
    {
        "edit",
        "eval",
        "fsdir",
        "fts3_tokenizer",
        "load_extension",
        "lsdir",
        "lsmode",
        "readfile",
        "rtreecheck",
        "sqlar_compress",
        "sqlar_uncompress",
        "sqlite_log",
        "writefile",
        "zipfile",
    }
)
DENIED_TABLES = frozenset(
    {
        "bytecode",
        "dbstat",
        "fsdir",
        "fts3tokenize",
        "sqlite_dbdata",
        "sqlite_dbpage",
        "sqlite_dbptr",
        "sqlite_memstat",
        "sqlite_stmt",
        "tables_used",
        "zipfile",
    }
)
# Somebody else's lock, a failing disk: nothing a statement could do better.
_FILE_ERRORS = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL}
)
# What full-text tables ask of the pager when they are read; both only report a number.
_HARMLESS_PRAGMAS = frozenset({"data_version", "page_size"})


def is_denied_function(name: str) -> bool:
    """Whether a function reads or writes files, loads code, or runs SQL of its own."""
    return name.lower() in DENIED_FUNCTIONS


def is_denied_table(name: str) -> bool:
    """Whether a table shows the engine or the file's pages: pragmas as tables, and the like."""
    lowered = name.lower()
    return lowered.startswith("pragma_") or lowered in DENIED_TABLES


class Request(NamedTuple):
    """One request. `target` is an SQLite URI, or for `heads` and `hash` the database's path.

    `stamp` tells versions of a file apart; `lossy` drops undecodable bytes of text; `seconds` bounds the
    whole request. `repetitions` and `fetch` concern `time` alone.
    """

    operation: str
    target: str
    stamp: tuple[int, ...] = ()
    sql: str = ""
    seconds: float = math.inf
    rows: int = 0
    result_bytes: int = 0
    cell_bytes: int = 0
    lossy: bool = False
    repetitions: int = 0
    fetch: bool = False


class _LimitError(Exception):
    """The result ran past a limit; the message names it."""


class _Watch:
    """What the callbacks of SQLite know of the statement that runs."""

    def __init__(self) -> None:
        self.deadline = math.inf
        self.expired = False
        self.denied = False

    def begin(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds
        self.expired = False
        self.denied = False

    def progress(self) -> bool:
        if time.monotonic() > self.deadline:
            self.expired = True
        return self.expired

    def authorize(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if _is_read(action, first or "", second or ""):
            return sqlite3.SQLITE_OK
        self.denied = True
        return sqlite3.SQLITE_DENY


def _is_read(action: int, first: str, second: str) -> bool:
    if action in {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE}:
        return True
    if action == sqlite3.SQLITE_READ:
        return not is_denied_table(first)
    if action == sqlite3.SQLITE_FUNCTION:
        return not is_denied_function(second)
    return action == sqlite3.SQLITE_PRAGMA and first.lower() in _HARMLESS_PRAGMAS and not second


def _decode_lossy(text: bytes) -> str:
    return text.decode("utf-8", "ignore")


class _Databases:
    """Open connections, the longest unused of which are closed first."""

    def __init__(self, watch: _Watch) -> None:
        self._watch = watch
        self._open: OrderedDict[tuple[str, tuple[int, ...]], sqlite3.Connection] = OrderedDict()

    def get(self, request: Request) -> sqlite3.Connection:
        key = (request.target, request.stamp)
        connection = self._open.get(key)
        if connection is None:
            while len(self._open) >= _OPEN_DATABASES:
                self._open.popitem(last=False)[1].close()
            connection = self.bare(request)
            self._guard(connection, _virtual_tables(connection))
            self._open[key] = connection
        self._open.move_to_end(key)
        return _prepared(connection, request)

    def fresh(self, request: Request, virtual: list[str]) -> sqlite3.Connection:
        connection = self.bare(request)
        self._guard(connection, virtual)
        return _prepared(connection, request)

    def _guard(self, connection: sqlite3.Connection, virtual: list[str]) -> None:
        for name in virtual:
            # A module that is missing here fails again, with its message, where a statement needs it.
            with contextlib.suppress(sqlite3.OperationalError):
                connection.execute("SELECT 1 FROM pragma_table_xinfo(?)", (name,)).fetchall()
        connection.set_authorizer(self._watch.authorize)

    def bare(self, request: Request) -> sqlite3.Connection:
        connection = sqlite3.connect(
            request.target,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=_LOCK_WAIT_SECONDS,
        )
        for pragma in (
            "query_only = ON",
            "temp_store = MEMORY",
            "trusted_schema = OFF",
            f"cache_size = -{_PAGE_CACHE_KIB}",
        ):
            connection.execute(f"PRAGMA {pragma}")
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES)
        connection.set_progress_handler(self._watch.progress, _STEPS_BETWEEN_LOOKS)
        return connection


def _prepared(connection: sqlite3.Connection, request: Request) -> sqlite3.Connection:
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(request.cell_bytes, _LARGEST_CELL))
    connection.text_factory = _decode_lossy if request.lossy else str
    return connection


def _virtual_tables(connection: sqlite3.Connection) -> list[str]:
    """Names of virtual tables that a statement may read.

    Each declares itself when first used on a connection, by a statement that an authorizer sees as a
    write: so they are used once before there is an authorizer.
    """
    connection.text_factory = _decode_lossy
    found = connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'")
    return [*_JSON_TABLES, *(name for (name,) in found)]


Send = Callable[[bytes], None]


def _frame(items: tuple[Any, ...]) -> bytes:
    return marshal.dumps(items, MARSHAL_VERSION)


def _execute(databases: _Databases, watch: _Watch, request: Request, send: Send) -> None:
    """Run one statement and send its rows as they come."""
    connection = databases.get(request)
    started = time.perf_counter()
    cursor = connection.execute(request.sql)
    try:
        count = size = 0
        for rows in _batches(cursor, watch):
            count += len(rows)
            if count > request.rows:
                raise _LimitError(f"result larger than {request.rows} rows")
            if len(rows) < _ROWS_A_FRAME:
                columns = tuple(item[0] for item in cursor.description or ())
                frame = _frame(("done", columns, rows, time.perf_counter() - started))
            else:
                frame = _frame(("rows", rows))
            size += len(frame)
            if size > request.result_bytes:
                raise _LimitError(f"result larger than {request.result_bytes} bytes")
            send(frame)
    finally:
        cursor.close()


def _batches(cursor: sqlite3.Cursor, watch: _Watch) -> Iterator[list[Any]]:
    """Rows in lists of `_ROWS_A_FRAME`; the last list is shorter, perhaps empty."""
    while True:
        rows = cursor.fetchmany(_ROWS_A_FRAME)
        if watch.progress():
            raise sqlite3.OperationalError("interrupted")
        yield rows
        if len(rows) < _ROWS_A_FRAME:
            return


def _time(databases: _Databases, watch: _Watch, request: Request, send: Send) -> None:
    """Seconds of each repetition, on a connection of its own, as the official timers have it."""
    seconds: list[float] = []
    lowered = request.sql.lower()
    with contextlib.closing(databases.bare(request)) as connection:
        virtual = [name for name in _virtual_tables(connection) if name.lower() in lowered]
    for _ in range(request.repetitions):
        connection = databases.fresh(request, virtual)
        try:
            started = time.perf_counter()
            cursor = connection.execute(request.sql)
            if request.fetch:
                count = 0
                for rows in _batches(cursor, watch):
                    count += len(rows)
                    if count > request.rows:
                        raise _LimitError(f"result larger than {request.rows} rows")
                connection.close()
            seconds.append(time.perf_counter() - started)
        finally:
            connection.close()
        if watch.progress():
            raise sqlite3.OperationalError("interrupted")
    send(_frame(("data", seconds)))


def _schema(databases: _Databases, request: Request, send: Send) -> None:
    """Tables and views in creation order: ``(name, [(column, type, key place)], [(id, columns…)])``.

    Those that SQLite cannot describe (a view on a table that is gone, a module that is not there) cannot be
    queried either, and are left out; so are the tables in which full-text and R-tree indexes keep their data.
    """
    connection = databases.bare(request)
    try:
        shadows = {row[1] for row in connection.execute("PRAGMA main.table_list") if row[2] == "shadow"}
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
            " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
        ).fetchall()
        tables = []
        for (name,) in names:
            if name in shadows:
                continue
            try:
                columns = connection.execute(
                    "SELECT name, type, pk FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid", (name,)
                ).fetchall()
            except sqlite3.OperationalError:
                continue
            keys = connection.execute(
                'SELECT "from", "table", "to", seq FROM pragma_foreign_key_list(?) ORDER BY id DESC, seq',
                (name,),
            ).fetchall()
            tables.append((name, columns, keys))
        send(_frame(("data", tables)))
    finally:
        connection.close()


def _heads(request: Request, send: Send) -> None:
    """The first bytes of a database, of its write-ahead log and of its journal; empty for no file."""
    heads = []
    for suffix in ("", "-wal", "-journal"):
        head = b""
        with contextlib.suppress(FileNotFoundError), io.FileIO(request.target + suffix) as stream:
            head = stream.read(_HEAD_BYTES)
        heads.append(head)
    send(_frame(("data", heads)))


def _hash(request: Request, send: Send) -> None:
    """sha256 (hex) of a database's file, followed by its write-ahead log where there is one."""
    import hashlib

    digest = hashlib.sha256()
    for suffix in ("", "-wal"):
        with contextlib.suppress(FileNotFoundError), io.FileIO(request.target + suffix) as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    send(_frame(("data", digest.hexdigest())))


def _answer(databases: _Databases, watch: _Watch, request: Request, send: Send) -> None:
    """Do what is asked; whatever SQLite makes of the statement is an answer."""
    watch.begin(request.seconds)
    started = time.perf_counter()
    try:
        if request.operation == "execute":
            _execute(databases, watch, request, send)
        elif request.operation == "time":
            _time(databases, watch, request, send)
        elif request.operation == "schema":
            _schema(databases, request, send)
        elif request.operation == "heads":
            _heads(request, send)
        else:
            _hash(request, send)
    except OSError as error:
        send(_frame(("failed", "file", error.strerror or "", time.perf_counter() - started)))
    except MemoryError:
        send(_frame(("failed", "memory", "out of memory", time.perf_counter() - started)))
    # OverflowError and ValueError: text that Python's binding refuses before SQLite sees it.
    except (sqlite3.Error, sqlite3.Warning, _LimitError, OverflowError, ValueError) as error:
        send(_frame(("failed", _kind(error, watch), _message(error), time.perf_counter() - started)))


def _kind(error: Exception, watch: _Watch) -> str:
    if watch.expired:
        return "timeout"
    if watch.denied:
        return "refused"
    if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _FILE_ERRORS:
        return "file"
    return "error"


def _message(error: Exception) -> str:
    """SQLite's own message, as text that can be written anywhere."""
    if isinstance(error, UnicodeEncodeError):
        return f"unrecognized token: {error.object[error.start : error.end]!a}"
    return str(error).encode("utf-8", "backslashreplace").decode("utf-8") or type(error).__name__


def _confine() -> None:
    for kind, most in (
        (resource.RLIMIT_AS, ADDRESS_SPACE),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (value, value))


def _end_with_parent() -> None:
    """Wait in a thread until the other end of standard input is gone; SQLite runs without Python's lock."""
    gone = select.poll()
    gone.register(0, 0)
    gone.poll()
    os._exit(0)


def _read_exactly(count: int) -> bytes:
    data = sys.stdin.buffer.read(count)
    if len(data) < count:
        os._exit(0)
    return data


def main() -> None:
    """Answer requests until standard input ends."""
    _confine()
    _thread.start_new_thread(_end_with_parent, ())
    output = sys.stdout.buffer

    def send(frame: bytes) -> None:
        output.write(HEADER.pack(len(frame)) + frame)
        output.flush()

    watch = _Watch()
    databases = _Databases(watch)
    send(_frame(("ready",)))
    while True:
        (length,) = HEADER.unpack(_read_exactly(HEADER.size))
        request = Request(*marshal.loads(_read_exactly(length)))  # noqa: S302 - written by our own parent
        send(_frame(("taken",)))
        _answer(databases, watch, request, send)


if __name__ == "__main__":
    main()
