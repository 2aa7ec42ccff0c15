"""The text that the official scorers execute: lines out of replies, and Spider's rewrites."""

import time

import pytest
import sqlparse
from hypothesis import given, settings
from hypothesis import strategies as st

from merit_sql.eval.official import (
    has_statement,
    official_line,
    repair_operators,
    replace_current_year,
    strip_distinct,
)


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT name -- all of them\n  FROM singer;", "SELECT name FROM singer"),
        ("/* first */ SELECT\t1 /* b */ ; -- c", "SELECT 1"),
        ("SELECT a/**/b", "SELECT a b"),
        ("SELECT 1;;", "SELECT 1;"),
        ("SELECT 1 ;  ", "SELECT 1"),
        ("SELECT 'a  b' ,\n\"x  y\",[p  q],`r  s`", "SELECT 'a  b' , \"x  y\",[p  q],`r  s`"),
        ("SELECT 'it''s -- no comment'", "SELECT 'it''s -- no comment'"),
        ("SELECT '/* none */' /* one */", "SELECT '/* none */'"),
        ("SELECT 'a' -- it's\n, 'b'", "SELECT 'a' , 'b'"),
        ("SELECT 'a\nb'", None),
        ('SELECT "a\r\nb"', None),
        ("SELECT 'a\tb'", None),
        ("SELECT 1 -- 'a\nb'", "SELECT 1 b'"),
        ("-- nothing", ""),
        ("  \n ", ""),
        ("SELECT 1 /* never closed\n", "SELECT 1"),
    ],
)
def test_a_reply_becomes_one_line(reply: str, line: str | None) -> None:
    assert official_line(reply) == line


@settings(deadline=None)
@given(st.text(alphabet="ab'\"`[]-/* \n\t;", max_size=40))
def test_a_line_stays_the_line_it_is(reply: str) -> None:
    line = official_line(reply)
    if line is not None:
        assert "\n" not in line
        assert "\t" not in line
        again = official_line(line)
        assert again in (line, line.removesuffix(";").rstrip())


@pytest.mark.parametrize("sql", ["", "  ", ";", ";;", "-- c", "/* c */ ;", "/* c", "--c\n;--d", " \n\t"])
def test_a_text_without_a_statement_is_known_as_such(sql: str) -> None:
    assert not has_statement(sql)


@pytest.mark.parametrize("sql", ["SELECT 1", "x", "''", ";SELECT 1", "-- c\nSELECT 1", "*/"])
def test_any_other_text_is_a_statement(sql: str) -> None:
    assert has_statement(sql)


@pytest.mark.parametrize(
    ("sql", "repaired"),
    [
        ("a > = 1 AND b < = 2 AND c ! = 3", "a >= 1 AND b <= 2 AND c != 3"),
        ("a >  = 1", "a >  = 1"),
        ("'> ='", "'>='"),
        ("a = > 1", "a = > 1"),
    ],
)
def test_operators_are_closed_up(sql: str, repaired: str) -> None:
    assert repair_operators(sql) == repaired


@pytest.mark.parametrize(
    ("sql", "replaced"),
    [
        ("SELECT YEAR(CURDATE()) - age", "SELECT 2020- age"),
        ("SELECT year ( curdate ( ) )", "SELECT 2020"),
        ("SELECT YEAR(NOW())", "SELECT YEAR(NOW())"),
        ("SELECT YEAR(CURDATE()) AND 1", "SELECT 2020AND 1"),
    ],
)
def test_the_current_year_is_2020(sql: str, replaced: str) -> None:
    assert replace_current_year(sql) == replaced


@pytest.mark.parametrize(
    ("sql", "stripped"),
    [
        ("SELECT DISTINCT a FROM t", "SELECT  a FROM t"),
        ("SELECT COUNT(DISTINCT a) FROM t", "SELECT COUNT( a) FROM t"),
        ("select distinct(a) from t", "select (a) from t"),
        ("SELECT 'distinct' FROM t", "SELECT 'distinct' FROM t"),
        ('SELECT "DISTINCT" FROM t', 'SELECT "DISTINCT" FROM t'),
        ("SELECT distincts FROM t", "SELECT distincts FROM t"),
        ("SELECT 1; SELECT 2", "SELECT 1; "),
        ("SELECT 1", "SELECT 1"),
        ("", None),
        (" ", None),
    ],
)
def test_distinct_is_stripped_from_the_first_statement(sql: str, stripped: str | None) -> None:
    assert strip_distinct(sql) == stripped


FRAGMENTS = ["SELECT ", "DISTINCT ", "distinct", "(", ")", ";", "'", '"', "a", " ", "--", "/*", "*/"]
FRAGMENTS += ["BEGIN ", "END", "CASE ", ",", "."]


@settings(deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=12).map("".join))
def test_stripping_takes_the_tokens_that_sqlparse_flattens(sql: str) -> None:
    statements = sqlparse.parse(sql)
    if not statements:
        assert strip_distinct(sql) is None
        return
    tokens = [token.value for token in statements[0].flatten()]
    assert strip_distinct(sql) == "".join(token for token in tokens if token.lower() != "distinct")


@pytest.mark.parametrize(
    "hostile",
    [
        "'" * 200_001,
        "SELECT '" + "''" * 100_000,
        "/*" * 100_000,
        "[" * 200_000,
        "- " * 100_000,
        " " * 200_000,
    ],
)
def test_hostile_texts_take_linear_time(hostile: str) -> None:
    started = time.process_time()
    official_line(hostile)
    has_statement(hostile)
    assert time.process_time() - started < 1
