"""Normal forms: expectations written by hand, and what must hold for any text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merit_sql.domain.sql import delta, normalize, oscillation_form, repeat_form

SQLISH = st.text(alphabet="aB '\"`[]\\;=(,)<>!+-*/\t\n\u00c9\u0130\u03a3", max_size=60)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \n\t ", ""),
        ("SELECT  A\n FROM\tT", "select a from t"),
        ("  SELECT 1  ", "select 1"),
        ("SELECT COUNT( * ) , X FROM T", "select count(*),x from t"),
        ("a  =  1 AND b < = 2 AND c ! = 3", "a=1 and b<=2 and c!=3"),
        ("a + b - c * d / e", "a+b-c*d/e"),
        ("X % Y || Z ; W", "x % y || z ; w"),
        ("WHERE Name = 'New  York'", "where name='New  York'"),
        ("'A' = \"B\"", "'A'=\"B\""),
        ("'A'   'B'", "'A' 'B'"),
        ('SELECT "First  Name" FROM `My  Table`', 'select "First  Name" from `My  Table`'),
        ("SELECT [Free  Meal] FROM T", "select [Free  Meal] from t"),
        ("'It''S  ME' AND X", "'It''S  ME' and x"),
        ('"A""B  C" AND X', '"A""B  C" and x'),
        ("`A``B  C` AND X", "`A``B  C` and x"),
        ("[A]]B  C] AND X", "[A]]B  C] and x"),
        (r"'A\'  B' AND X", r"'A\'  B' and x"),
        (r"'A\\' AND  X", r"'A\\' and x"),
        ("X = 'Never  Closed ", "x='Never  Closed "),
        ("X = 'Ends in \\", "x='Ends in \\"),
        ("'(' ( '( A' )", "'('('( A')"),
        ("' a ' ", "' a '"),
        ("X\u00a0Y\u2028Z", "x y z"),
    ],
)
def test_normalize_by_hand(text: str, expected: str) -> None:
    assert normalize(text) == expected


@given(SQLISH)
def test_normalize_is_idempotent(text: str) -> None:
    assert normalize(normalize(text)) == normalize(text)


@given(st.lists(st.sampled_from(["SELECT", "a", "'B  c'", "( ", " )", "=", " , ", "\n", "  "]), max_size=12))
def test_case_and_amount_of_space_outside_quotes_do_not_matter(pieces: list[str]) -> None:
    loud = "".join(piece if piece.startswith("'") else piece.upper() for piece in pieces)
    wide = "".join(piece if piece.startswith("'") else re.sub(r"\s", " \n ", piece) for piece in pieces)
    assert normalize(loud) == normalize("".join(pieces)) == normalize(wide)


@given(st.text(alphabet="aB  ,=(", max_size=20))
def test_a_quoted_text_survives_whatever_it_holds(inner: str) -> None:
    assert normalize(f"SELECT  '{inner}'  FROM T") == f"select '{inner}' from t"


def test_a_text_of_megabytes_without_closing_quote_is_normalised() -> None:
    text = "'" + "a''" * 700_000
    assert normalize("SELECT  " + text) == "select " + text


def test_delta_is_verbatim() -> None:
    assert delta("SELECT  a", "SELECT  b ;") == "SELECT  a => SELECT  b ;"
    assert delta("", "SELECT b") == " => SELECT b"
    assert delta(None, "SELECT b") == "initial SQL => SELECT b"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT 1", "select  1 ;"),
        ("SELECT 1;", "SELECT 1 ; ;\n"),
        ("SELECT a , b FROM t", "select A,B from T"),
        ("", " ; "),
    ],
)
def test_these_attempts_repeat_each_other(one: str, other: str) -> None:
    assert repeat_form(one) == repeat_form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT 'a'", "SELECT 'A'"),
        ("SELECT ';'", "SELECT ''"),
        ("SELECT a b", "SELECT ab"),
        ("SELECT 'a  b'", "SELECT 'a b'"),
    ],
)
def test_these_attempts_do_not(one: str, other: str) -> None:
    assert repeat_form(one) != repeat_form(other)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("  SELECT  A ;\n", "select a"),
        ("SELECT 1;;", "select 1"),
        ("SELECT 'A  B'", "select 'a b'"),
        ("SELECT a , b", "select a , b"),
        ("", ""),
    ],
)
def test_oscillation_form_knows_no_quotes(sql: str, expected: str) -> None:
    assert oscillation_form(sql) == expected
