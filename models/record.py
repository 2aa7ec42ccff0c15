"""The reply record: replies and verdicts in one SQLite file, kept on first sight and given again for ever."""

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from merit_sql.domain.errors import DataError, ModelError
from merit_sql.models.identity import ModelIdentity
from merit_sql.models.recorded import Meter, RecordedChatModel
from merit_sql.models.replies import RecordError, Replies, Reply, reply_key
from merit_sql.models.shards import MAGIC, ShardedReplies, write_shards

__all__ = [
    "Meter",
    "RecordError",
    "RecordedChatModel",
    "Replies",
    "Reply",
    "ReplyRecord",
    "open_record",
    "recorded_identity",
    "reply_key",
    "write_shards",
]

_APPLICATION = 0x4D655251
_VERSION = 1
_SQLITE_MAGIC = b"SQLite format 3\x00"
_SCHEMA = """
CREATE TABLE models (digest TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE replies (key TEXT PRIMARY KEY, model TEXT NOT NULL REFERENCES models, value TEXT NOT NULL);
CREATE TABLE verdicts (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class ReplyRecord:
    """A record in a SQLite file of mode 0600, made if it does not exist.

    What is put under a key first stays. Every put is committed before it returns: a process that is killed
    loses nothing and leaves no damage (its last puts may lie in a file ``…-wal`` beside the record until the
    record is next opened). Safe for threads, and for several processes. A file that is damaged, or that is
    no record, is a `RecordError` and is left as it is.
    """

    def __init__(self, path: Path, *, writable: bool = True) -> None:
        """Open `path`; where not `writable` it must exist, and nothing is ever put into it."""
        self.path = path
        self.writable = writable
        self._lock = threading.RLock()
        if writable:
            self._make_private()
        with self._errors():
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?{self._access()}",
                uri=True,
                timeout=60.0,
                isolation_level=None,
                check_same_thread=False,
            )
        try:
            with self._errors():
                self._check_form()
        except RecordError:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    @property
    def name(self) -> str:
        """See `Replies.name`."""
        return str(self.path)

    def get(self, key: str) -> Reply | None:
        """See `Replies.get`."""
        value = self._value("SELECT value FROM replies WHERE key = ?", key)
        return None if value is None else Reply.from_dict(value)

    def put(self, key: str, identity: ModelIdentity, reply: Reply) -> Reply:
        """Keep a reply, and return the one that stands: an earlier one where there was one."""
        digest = identity.digest()
        with self._errors(), self._transaction():
            self._connection.execute(
                "INSERT OR IGNORE INTO models VALUES (?, ?)", (digest, _plain(identity.to_dict()))
            )
            self._connection.execute(
                "INSERT OR IGNORE INTO replies VALUES (?, ?, ?)", (key, digest, _plain(reply.to_dict()))
            )
        kept = self.get(key)
        if kept is None:
            raise RecordError(f"{self.path}: a reply was written and is not there")
        return kept

    def identities(self) -> list[ModelIdentity]:
        """See `Replies.identities`."""
        with self._errors():
            rows = self._connection.execute("SELECT value FROM models ORDER BY digest").fetchall()
            return [ModelIdentity.from_dict(json.loads(value)) for (value,) in rows]

    def items(self) -> Iterator[tuple[str, ModelIdentity, Reply]]:
        """See `Replies.items`."""
        models = {identity.digest(): identity for identity in self.identities()}
        with self._errors():
            rows = self._connection.execute("SELECT key, model, value FROM replies ORDER BY key").fetchall()
            for key, digest, value in rows:
                yield key, models[digest], Reply.from_dict(json.loads(value))

    def get_verdict(self, key: str) -> object | None:
        """What was put under the key of a verdict, or None."""
        return self._value("SELECT value FROM verdicts WHERE key = ?", key)

    def put_verdict(self, key: str, value: object) -> None:
        """Keep JSON-able data under the key for good; a second value for it changes nothing."""
        with self._errors(), self._transaction():
            self._connection.execute("INSERT OR IGNORE INTO verdicts VALUES (?, ?)", (key, _plain(value)))

    def _value(self, query: str, key: str) -> object | None:
        with self._errors():
            row = self._connection.execute(query, (key,)).fetchone()
            return None if row is None else json.loads(row[0])

    def _make_private(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            if self.path.stat().st_mode & 0o077:
                self.path.chmod(0o600)
        except OSError as error:
            raise RecordError(f"{self.path}: no reply record can be kept here ({error})") from error

    def _access(self) -> str:
        """How SQLite opens the file, as the query of its URI.

        A record that is only read is opened for writing too, since whoever opens it after a killed writer
        must finish that writer's work; only in a folder that cannot be written is it taken as it is.
        """
        finished = not self.path.with_name(f"{self.path.name}-wal").exists()
        return "immutable=1" if finished and not os.access(self.path.parent, os.W_OK) else "mode=rw"

    def _check_form(self) -> None:
        with self._transaction() if self.writable else self._lock:
            application = self._pragma("application_id")
            tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if self.writable and application == 0 and tables == 0:
                for statement in _SCHEMA.strip().splitlines():
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                self._connection.execute(f"PRAGMA user_version = {_VERSION}")
            elif application != _APPLICATION:
                raise RecordError(f"{self.path} is no reply record; name another file")
            elif self._pragma("user_version") != _VERSION:
                raise RecordError(
                    f"{self.path} is a reply record of version {self._pragma('user_version')}, "
                    f"and this program reads version {_VERSION}: use the program that made it"
                )
        if self.writable:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
        else:
            self._connection.execute("PRAGMA query_only = ON")
        verdict = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)

    def _pragma(self, name: str) -> int:
        value: int = self._connection.execute(f"PRAGMA {name}").fetchone()[0]
        return value

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Hold the connection, and turn what SQLite says into a `RecordError` that names the file."""
        try:
            with self._lock:
                yield
        except sqlite3.OperationalError as error:
            raise RecordError(f"{self.path}: the reply record cannot be used ({error})") from error
        except (sqlite3.Error, ValueError, LookupError, DataError) as error:
            raise RecordError(
                f"{self.path}: the reply record is damaged ({error}); it was left as it is: restore it "
                "from a copy, or move it away to begin a new one"
            ) from error


def _plain(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def open_record(path: Path) -> Replies:
    """Open recorded replies for reading: a record's SQLite file, one shard, or a folder of shards.

    Raises `RecordError` where there is none, or it is damaged.
    """
    if path.is_dir():
        return ShardedReplies(path)
    try:
        with path.open("rb") as file:
            start = file.read(len(_SQLITE_MAGIC))
    except (OSError, ValueError) as error:
        raise RecordError(f"{str(path)!r}: recorded replies cannot be read ({error})") from error
    if start == _SQLITE_MAGIC:
        return ReplyRecord(path, writable=False)
    if start.startswith(MAGIC):
        return ShardedReplies(path)
    raise RecordError(
        f"{path} holds no recorded replies: they are a record's SQLite file (replies.sqlite), "
        "a shard (*.jsonl.xz), or a folder of shards"
    )


def recorded_identity(record: Replies, chosen: str | None = None) -> ModelIdentity:
    """The one model whose replies a record holds, or the `chosen` one by its name, ``kind:name`` or digest.

    Raises `ModelError`, naming the models that are there, where that does not leave exactly one.
    """
    models = record.identities()
    matching = [
        model
        for model in models
        if chosen is None
        or chosen in (model.model, f"{model.kind}:{model.model}")
        or (len(chosen) >= 8 and model.digest().startswith(chosen))
    ]
    if len(matching) == 1:
        return matching[0]
    if not models:
        raise ModelError(f"{record.name} holds no replies of any model")
    named = "; ".join(f"{model.describe()}, digest {model.digest()[:12]}" for model in models)
    asked = "" if chosen is None else f", and {chosen!r} fits {len(matching)} of them"
    raise ModelError(f"{record.name} holds replies of {len(models)} models{asked}; choose one: {named}")
