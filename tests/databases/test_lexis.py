"""SQLite's lexical rules, against its own reading where it can be asked."""

import sqlite3
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merit_sql.databases.lexis import Kind, lexemes


@pytest.mark.parametrize(
    ("sql", "texts"),
    [
        ("SELECT a.b, 'it''s'", ["SELECT", "a", ".", "b", ",", "'it''s'"]),
        ("a--b;\nc", ["a", "c"]),
        ("a/*;*/b/*c", ["a", "b"]),
        ("a - - b", ["a", "-", "-", "b"]),
        ("'a\\'b'", ["'a\\'", "b", "'"]),
        ("/* a /* b */ c", ["c"]),
        ("1e9 0x1F .5", ["1e9", "0x1F", ".", "5"]),
        ('[a;b]`c;d`"e;f"', ["[a;b]", "`c;d`", '"e;f"']),
        ("größe $x", ["größe", "$", "x"]),
        ("'open ; to the end", ["'open ; to the end"]),
    ],
)
def test_lexemes(sql: str, texts: list[str]) -> None:
    assert [lexeme.text for lexeme in lexemes(sql)] == texts


def test_depth_counts_the_brackets_around_a_lexeme() -> None:
    assert [(lexeme.text, lexeme.depth) for lexeme in lexemes("a(b(c)d)e '('")] == [
        ("a", 0),
        ("(", 0),
        ("b", 1),
        ("(", 1),
        ("c", 2),
        (")", 1),
        ("d", 1),
        (")", 0),
        ("e", 0),
        ("'('", 0),
    ]


@given(st.text(alphabet="ab'\"`[];-/*\n \t(", max_size=30))
def test_a_statement_that_is_complete_for_sqlite_ends_with_a_semicolon_here(text: str) -> None:
    """`complete_statement` is true when the last lexeme is a semicolon (outside CREATE TRIGGER)."""
    kinds = [lexeme.kind for lexeme in lexemes(text)]
    ends_here = bool(kinds) and kinds[-1] is Kind.SEMICOLON
    if sqlite3.complete_statement(text):
        assert ends_here
    # A comment that is never closed makes a text incomplete for SQLite, though it runs.
    elif "/*" not in text:
        assert not ends_here


@pytest.mark.parametrize("piece", [*"'\"`[(/a1; \x00", "/*", "*/", "--", "''"])
def test_time_is_linear(piece: str) -> None:
    started = time.process_time()
    lexemes("SELECT " + piece * 100_000)
    assert time.process_time() - started < 5
