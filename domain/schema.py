"""A database's schema as prompts and retrieval see it."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column of some table, as a foreign key names it (original names)."""

    table: str
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its original name, declared type, and its part in keys."""

    name: str
    type: str
    primary_key: bool = False
    references: tuple[ColumnRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table or view with its columns in declaration order."""

    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """All tables of one database, in declaration order."""

    database_id: str
    tables: tuple[Table, ...]

    def __iter__(self) -> Iterator[Table]:
        return iter(self.tables)
