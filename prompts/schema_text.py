"""A schema as prompts and memories print it."""

import re
from functools import lru_cache

from merit_sql.domain.schema import Column, Schema, Table
from merit_sql.prompts.text import capped, one_line

NAME_LIMIT = 200
"""Characters of one name or declared type."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_RESERVED = re.compile(
    r"add|all|alter|and|as|autoincrement|between|case|cast|check|collate|commit|constraint|create|"
    r"current_date|current_time|current_timestamp|default|deferrable|delete|distinct|drop|else|"
    r"escape|except|exists|foreign|from|group|having|in|index|insert|intersect|into|is|isnull|join|"
    r"limit|not|nothing|notnull|null|on|or|order|primary|raise|references|returning|select|set|table|"
    r"then|to|transaction|union|unique|update|using|values|when|where",
    re.IGNORECASE,
)
"""SQLite's keywords that cannot stand as a bare table or column name, or mean something else there."""


def name_text(name: str) -> str:
    """An original name as a query may use it: in back-ticks unless it can stand bare."""
    shown = capped(one_line(name), NAME_LIMIT)
    if _PLAIN.fullmatch(shown) and not _RESERVED.fullmatch(shown):
        return shown
    return f"`{shown.replace('`', '``')}`"


def column_text(column: Column) -> str:
    """One line: name, type, PRIMARY KEY, and ``FOREIGN KEY -> table.column`` for each reference."""
    parts = [name_text(column.name), capped(one_line(column.type), NAME_LIMIT)]
    if column.primary_key:
        parts.append("PRIMARY KEY")
    parts += [f"FOREIGN KEY -> {name_text(ref.table)}.{name_text(ref.column)}" for ref in column.references]
    return "  " + " ".join(part for part in parts if part)


@lru_cache(maxsize=4096)
def table_text(table: Table, columns: int | None = None) -> str:
    """The table's name and a line for each column, or for the first `columns` of them."""
    shown = table.columns[:columns]
    lines = [f"table {name_text(table.name)}:", *(column_text(column) for column in shown)]
    if len(shown) < len(table.columns):
        lines.append(f"  ({len(table.columns) - len(shown)} more columns)")
    return "\n".join(lines)


def render_schema(schema: Schema) -> str:
    """The whole schema, with no budget: what a memory entry keeps and what prompts print when it fits."""
    return "\n".join(table_text(table) for table in schema)
