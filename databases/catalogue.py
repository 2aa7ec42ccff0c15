"""Catalogues: all the databases of a benchmark, of a folder, or one file."""

import functools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

from merit_sql.databases.pool import WorkerPool
from merit_sql.databases.schemas import SchemaFile
from merit_sql.databases.source import COMPANIONS, is_database
from merit_sql.databases.sqlite import SqliteDatabase
from merit_sql.domain.errors import DataError


class Catalogue(Mapping[str, SqliteDatabase]):
    """Databases by the name that questions use, sorted; only those whose file exists are members.

    A name is looked up among the files that were found, never made into a path. The workers behind all
    members are one pool, which `close` (or leaving a ``with`` block) ends.
    """

    def __init__(self, databases: Mapping[str, SqliteDatabase], *, pool: WorkerPool) -> None:
        """The given databases, all of which run on `pool`."""
        self._databases = dict(sorted(databases.items()))
        self._pool = pool
        self._variants: dict[str, tuple[SqliteDatabase, ...]] = {}

    @classmethod
    def from_spider(cls, data: Path, *, workers: int = 1) -> "Catalogue":
        """The databases of ``data/spider``: ``database/<db>/<db>.sqlite``, schemas from ``tables.json``."""
        root = Path(data) / "spider"
        return _from_tree(root / "database", SchemaFile(root / "tables.json"), workers)

    @classmethod
    def from_bird(cls, data: Path, *, workers: int = 1) -> "Catalogue":
        """The databases of ``data/bird``: ``dev_databases/<db>/<db>.sqlite``, from ``dev_tables.json``."""
        root = Path(data) / "bird"
        return _from_tree(root / "dev_databases", SchemaFile(root / "dev_tables.json"), workers)

    @classmethod
    def from_folder(cls, folder: Path, *, workers: int = 1) -> "Catalogue":
        """The SQLite files in a folder or one folder deeper, whatever their suffix; the name is the stem.

        Raises `DataError` when there is no such folder or two files have one stem.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder: name one that holds SQLite files")
        pool = WorkerPool(workers)
        databases: dict[str, SqliteDatabase] = {}
        for path in sorted([*folder.glob("*"), *folder.glob("*/*")]):
            if not path.is_file() or not is_database(path):
                continue
            if path.stem in databases:
                first = databases[path.stem].path
                raise DataError(f"{first} and {path} would both be {path.stem}: rename one, or move it away")
            databases[path.stem] = SqliteDatabase(path, database_id=path.stem, pool=pool)
        return cls(databases, pool=pool)

    @classmethod
    def from_file(cls, path: Path, *, workers: int = 1) -> "Catalogue":
        """One SQLite file, named by its stem; raises `DataError` when it is not one."""
        path = Path(path)
        if not path.is_file():
            raise DataError(f"{path}: no such file: name an SQLite database")
        if not is_database(path):
            raise DataError(f"{path}: not an SQLite database: its first bytes are not those of one")
        pool = WorkerPool(workers)
        return cls({path.stem: SqliteDatabase(path, database_id=path.stem, pool=pool)}, pool=pool)

    def variants(self, database_id: str) -> tuple[SqliteDatabase, ...]:
        """The files a result must agree on, sorted by name; raises KeyError for a name that is no member.

        In a benchmark's tree these are all files in the database's folder whose name contains ``.sqlite``;
        elsewhere it is the database alone.
        """
        if database_id not in self._variants:
            self._variants[database_id] = self._find_variants(self[database_id])
        return self._variants[database_id]

    def _find_variants(self, database: SqliteDatabase) -> tuple[SqliteDatabase, ...]:
        return (database,)

    def close(self) -> None:
        """End the workers; a later statement starts new ones."""
        self._pool.close()

    def __getitem__(self, database_id: str) -> SqliteDatabase:
        return self._databases[database_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._databases)

    def __len__(self) -> int:
        return len(self._databases)

    def __enter__(self) -> "Catalogue":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _TreeCatalogue(Catalogue):
    """A catalogue in which each database has a folder of its own, with its variants in it."""

    def _find_variants(self, database: SqliteDatabase) -> tuple[SqliteDatabase, ...]:
        names = sorted(
            entry.name
            for entry in os.scandir(database.path.parent)
            if ".sqlite" in entry.name and not entry.name.endswith(COMPANIONS) and entry.is_file()
        )
        return tuple(
            database
            if name == database.path.name
            else SqliteDatabase(
                database.path.with_name(name),
                database_id=database.database_id,
                pool=self._pool,
                schema=lambda: database.schema,
            )
            for name in names
        )


def _from_tree(root: Path, schemas: SchemaFile, workers: int) -> _TreeCatalogue:
    pool = WorkerPool(workers)
    databases: dict[str, SqliteDatabase] = {}
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        name = folder.name
        path = folder / f"{name}.sqlite"
        if path.is_file():
            databases[name] = SqliteDatabase(
                path, database_id=name, pool=pool, schema=functools.partial(schemas.get, name)
            )
    return _TreeCatalogue(databases, pool=pool)
