"""The text that an official scorer executes, made from a prediction or a reply."""

import re
from typing import Any

_TOKEN = re.compile(
    r"""
      (?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))
    | (?P<quoted>
          '[^']*(?:''[^']*)*(?:'|\Z)
        | "[^"]*(?:""[^"]*)*(?:"|\Z)
        | `[^`]*(?:``[^`]*)*(?:`|\Z)
        | \[[^\]]*(?:\]|\Z)
      )
    | (?P<space>[ \t\n\f\r]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_UNWRITABLE = re.compile(r"[\t\n\r]")
_CURRENT_YEAR = re.compile(r"YEAR\s*\(\s*CURDATE\s*\(\s*\)\s*\)\s*", re.IGNORECASE)
_SPACED_OPERATORS = {"> =": ">=", "< =": "<=", "! =": "!="}


def official_line(sql: str) -> str | None:
    """A reply as the one line that a predictions file can hold.

    Comments are dropped, whitespace outside quotes is folded to one space, and one trailing semicolon
    goes. None where a quoted text holds a line break or a tab: such a query cannot be written on a line.

    >>> official_line("SELECT name -- all of them\\n  FROM singer;")
    'SELECT name FROM singer'
    """
    pieces: list[str] = []
    position = 0
    for match in _TOKEN.finditer(sql):
        if match.start() > position:
            pieces.append(sql[position : match.start()])
        position = match.end()
        quoted = match["quoted"]
        if quoted is None:
            if pieces and pieces[-1] != " ":
                pieces.append(" ")
        elif _UNWRITABLE.search(quoted):
            return None
        else:
            pieces.append(quoted)
    pieces.append(sql[position:])
    return "".join(pieces).strip().removesuffix(";").rstrip()


def has_statement(sql: str) -> bool:
    """Whether there is anything but comments, whitespace and semicolons: SQLite runs the rest as nothing."""
    return bool(_TOKEN.sub(lambda match: match["quoted"] or " ", sql).strip(" ;"))


def from_statement(sql: str) -> str:
    """`sql` from where its statement begins: SQLite skips semicolons before one, the gate does not."""
    return sql.lstrip("; \t\n\f\r")


def repair_operators(sql: str) -> str:
    """``> =``, ``< =`` and ``! =`` closed up, as Spider's scorer does on both sides, in literals too."""
    for spaced, closed in _SPACED_OPERATORS.items():
        sql = sql.replace(spaced, closed)
    return sql


def replace_current_year(sql: str) -> str:
    """``YEAR(CURDATE())`` as 2020, the spaces after it included, as Spider's scorer does on both sides."""
    return _CURRENT_YEAR.sub("2020", sql)


def strip_distinct(sql: str) -> str | None:
    """The first statement of `sql` without its DISTINCT tokens; None where there is no statement.

    Tokens are those of sqlparse, which the official scorer uses: text in quotes is one token. Its grouping
    of tokens is left out: it changes none of them, takes most of the time, and refuses deep nesting.
    """
    if not sql.strip():
        return None
    if "distinct" not in sql.lower() and ";" not in sql:
        return sql
    import sqlparse

    unannotated: Any = sqlparse.engine
    statement = next(iter(unannotated.FilterStack().run(sql)), None)
    if statement is None:
        return None
    return "".join(token.value for token in statement.tokens if token.value.lower() != "distinct")
