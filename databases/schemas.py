"""Schemas: out of a benchmark's ``tables.json``, or as the database itself describes them."""

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from merit_sql.domain.errors import DataError
from merit_sql.domain.schema import Column, ColumnRef, Schema, Table

Described = tuple[str, Sequence[tuple[str, str, int]], Sequence[tuple[str, str, str | None, int]]]
"""What a worker says of one table: its name, its columns, its foreign keys (see `worker`)."""


class SchemaFile:
    """A ``tables.json`` (Spider) or ``dev_tables.json`` (BIRD), read when first asked."""

    def __init__(self, path: Path) -> None:
        """A file that need not be there."""
        self.path = path

    def get(self, database_id: str) -> Schema | None:
        """The schema that the file has for a database; None when it has none, or is not there."""
        entry = self._entries.get(database_id)
        if entry is None:
            return None
        try:
            return _from_entry(database_id, entry)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise DataError(
                f"{self.path}: the entry of {database_id} is not in Spider's form ({error!r}): "
                "fetch the benchmark's original file again"
            ) from error

    @functools.cached_property
    def _entries(self) -> dict[str, Any]:
        try:
            entries = json.loads(self.path.read_text(encoding="utf-8"))
            return {entry["db_id"]: entry for entry in entries}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{self.path}: not a list of schemas ({error!r}): fetch the benchmark's original file again"
            ) from error


def _from_entry(database_id: str, entry: dict[str, Any]) -> Schema:
    tables: list[str] = entry["table_names_original"]
    columns: list[tuple[int, str]] = [
        (int(table), str(name)) for table, name in entry["column_names_original"]
    ]
    types: list[str] = entry["column_types"]
    primary = {place for key in entry["primary_keys"] for place in (key if isinstance(key, list) else [key])}
    references: dict[int, list[ColumnRef]] = {}
    for child, parent in entry["foreign_keys"]:
        table, name = columns[parent]
        references.setdefault(child, []).append(ColumnRef(tables[table], name))
    found: list[list[Column]] = [[] for _ in tables]
    for place, (table, name) in enumerate(columns):
        if table >= 0:
            found[table].append(
                Column(
                    name=name,
                    type=types[place],
                    primary_key=place in primary,
                    references=tuple(references.get(place, ())),
                )
            )
    return Schema(
        database_id=database_id,
        tables=tuple(Table(name=name, columns=tuple(own)) for name, own in zip(tables, found, strict=True)),
    )


def from_description(database_id: str, described: Sequence[Described]) -> Schema:
    """The schema of what a worker read from the database, tables and views in creation order.

    A foreign key that names no column refers to the other table's primary key, as in SQLite.
    """
    tables = {name.lower(): (name, columns) for name, columns, _ in described}
    return Schema(
        database_id=database_id,
        tables=tuple(
            Table(
                name=name,
                columns=tuple(
                    Column(
                        name=column,
                        type=declared,
                        primary_key=key > 0,
                        references=tuple(
                            _reference(tables, parent, target, place)
                            for child, parent, target, place in keys
                            if child.lower() == column.lower()
                        ),
                    )
                    for column, declared, key in columns
                ),
            )
            for name, columns, keys in described
        ),
    )


def _reference(
    tables: Mapping[str, tuple[str, Sequence[tuple[str, str, int]]]],
    parent: str,
    target: str | None,
    place: int,
) -> ColumnRef:
    """The column a foreign key means, spelt as its table spells it; `place` counts within the key."""
    name, columns = tables.get(parent.lower(), (parent, ()))
    if target is None:
        primary = [column for _, column in sorted((key, column) for column, _, key in columns if key)]
        return ColumnRef(name, primary[place] if place < len(primary) else "rowid")
    return ColumnRef(name, next((own for own, _, _ in columns if own.lower() == target.lower()), target))
