"""Turns the readable sources of the suite `mini` (DDL and CSV) into SQLite files, byte for byte the same."""

import csv
import hashlib
import json
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from importlib.resources import as_file, files
from pathlib import Path

from merit_sql.domain.errors import DataError
from merit_sql.domain.execution import Cell
from merit_sql.domain.paths import cache_dir

NULL = r"\N"
"""What a CSV field holds where the database holds NULL; an empty field is the empty string."""

_SEAL = "built.json"
_CONVERT: Mapping[str, Callable[[str], Cell]] = {"INTEGER": int, "REAL": float, "TEXT": str}

# SQLite stamps the number of the library that wrote last at this offset of the header. It is fixed here,
# so that a database has the same bytes, hence the same fingerprint, whichever library built it.
_LIBRARY_VERSION_OFFSET = 96
_LIBRARY_VERSION = (3_040_001).to_bytes(4, "big")


def build_mini(target: Path | None = None) -> Path:
    """Build the databases of `mini` as ``<folder>/<db>/<db>.sqlite`` and return the folder.

    The folder is `target`, or one in the cache that is named after a hash of the sources. What stands
    there already is kept when its bytes are those that were built from these very sources; anything
    else (missing, torn, damaged, or from other sources) is built again. Each file is built aside and
    moved into place whole, and since equal sources give equal bytes, several processes may build at once.

    Raises `DataError` when a CSV does not fit its table, and `OSError` when the folder cannot be written.
    """
    with as_file(files("merit_sql.eval.suites") / "mini") as sources:
        digest = _digest(sources)
        folder = target or cache_dir() / "suites" / f"mini-{digest[:16]}"
        names = sorted(path.parent.name for path in sources.glob("*/schema.sql"))
        if not _is_complete(folder, digest, names):
            _build_all(sources, digest, names, folder)
    return folder


def _digest(sources: Path) -> str:
    """sha256 (hex) over the names and bytes of every DDL and CSV file."""
    total = hashlib.sha256()
    for path in sorted([*sources.glob("*/schema.sql"), *sources.glob("*/*.csv")]):
        name = path.relative_to(sources).as_posix()
        total.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def _is_complete(folder: Path, digest: str, names: list[str]) -> bool:
    """Whether the folder's seal names these sources and every database still has the sealed hash."""
    try:
        seal = json.loads((folder / _SEAL).read_text(encoding="utf-8"))
        return bool(seal["sources"] == digest) and all(
            _sha256(folder / name / f"{name}.sqlite") == seal["databases"][name] for name in names
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return False


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _build_all(sources: Path, digest: str, names: list[str], folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".building-") as scratch:
        built = {name: Path(scratch) / f"{name}.sqlite" for name in names}
        for name, path in built.items():
            build_database(sources / name, path)
        seal = Path(scratch) / _SEAL
        hashes = {name: _sha256(path) for name, path in built.items()}
        seal.write_text(json.dumps({"sources": digest, "databases": hashes}, indent=1), encoding="utf-8")
        for name, path in built.items():
            (folder / name).mkdir(parents=True, exist_ok=True)
            path.replace(folder / name / path.name)
        seal.replace(folder / _SEAL)


def build_database(source: Path, path: Path) -> None:
    """Build one database at `path` (which must not exist) from ``schema.sql`` and one CSV a table.

    A CSV's header names the table's columns in their order. Each field is converted after its column's
    declared type (INTEGER, REAL or TEXT). Raises `DataError` naming file and line for what does not fit.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA page_size = 4096")
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.executescript((source / "schema.sql").read_text(encoding="utf-8"))
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")
        names = [name for (name,) in tables]
        strays = {csv_path.stem for csv_path in source.glob("*.csv")} - set(names)
        if strays:
            raise DataError(f"{source}: no table in schema.sql for the CSV files of {sorted(strays)}")
        connection.execute("BEGIN")
        for name in names:
            _load(connection, name, source / f"{name}.csv")
        connection.execute("COMMIT")
        dangling = connection.execute("PRAGMA foreign_key_check").fetchone()
        if dangling:
            raise DataError(f"{source}: {dangling[0]}, row {dangling[1]}: no such row in {dangling[2]}")
        connection.execute("VACUUM")
    with path.open("r+b") as file:
        file.seek(_LIBRARY_VERSION_OFFSET)
        file.write(_LIBRARY_VERSION)


def _load(connection: sqlite3.Connection, table: str, path: Path) -> None:
    columns = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file, strict=True)
        header = next(lines, [])
        if header != [name for name, _ in columns]:
            raise DataError(f"{path}: header {header} is not the list of the table's columns {columns}")
        insert = " ".join(["INSERT INTO", f'"{table}"', "VALUES", f"({', '.join('?' * len(columns))})"])
        for fields in lines:
            row = _row(fields, [kind for _, kind in columns], f"{path}, line {lines.line_num}")
            try:
                connection.execute(insert, row)
            except sqlite3.IntegrityError as error:
                raise DataError(f"{path}, line {lines.line_num}: {error}") from error


def _row(fields: list[str], kinds: list[str], where: str) -> list[Cell]:
    if len(fields) != len(kinds):
        raise DataError(f"{where}: {len(fields)} fields for {len(kinds)} columns")
    try:
        return [
            None if field == NULL else _CONVERT[kind](field)
            for field, kind in zip(fields, kinds, strict=True)
        ]
    except (ValueError, KeyError) as error:
        raise DataError(f"{where}: does not fit the declared types {kinds}: {error}") from error
