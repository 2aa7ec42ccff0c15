"""SQL out of replies, hostile ones above all."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merit_sql.prompts.extraction import extract_reflection, extract_sql


@pytest.mark.parametrize(
    ("reply", "sql"),
    [
        # Where the SQL is looked for.
        ("<answer>SELECT 1</answer>", "SELECT 1"),
        ("SELECT 1", "SELECT 1"),
        ("```sql\nSELECT 1\n```", "SELECT 1"),
        ("<answer>\n```sql\nSELECT 1;\n```\n</answer>", "SELECT 1"),
        ("```sql\n<answer>SELECT 1</answer>\n```", "SELECT 1"),
        ("SELECT 0 <answer>SELECT 1</answer>", "SELECT 1"),
        ("<answer>SELECT 1</answer><answer>SELECT 2</answer>", "SELECT 1"),
        ("<answer>SELECT 1</answer>\n```sql\nSELECT 2\n```", "SELECT 1"),
        ("```sql\nSELECT 1\n```\n```sql\nSELECT 2\n```", "SELECT 1"),
        ("```sql\nSELECT 1\n```\nThis counts; it groups.", "SELECT 1"),
        ("```SELECT 1```", "SELECT 1"),
        ("```sqlite -- the select\nSELECT 1\n```", "SELECT 1"),
        ("Sure! Here is the query:\n\n<answer>\nSELECT 1\n</answer>\nHope it helps; bye.", "SELECT 1"),
        # Tags that are unclosed, nested, loud, decorated or stray.
        ("<answer>SELECT 1", "SELECT 1"),
        ("SELECT 1</answer>", "SELECT 1"),
        ("<answer>```sql\nSELECT 1", "SELECT 1"),
        ("<answer>SELECT 1```</answer>", "SELECT 1"),
        ("<answer><answer>SELECT 1</answer></answer>", "SELECT 1"),
        ("It goes into <answer> tags.\n<answer>SELECT 1</answer>", "SELECT 1"),
        ("<ANSWER>select 1</Answer>", "select 1"),
        ('<answer lang="sql" n=1>SELECT 1</answer >', "SELECT 1"),
        ("<answer>SELECT 1</sql> SELECT 2</answer>", "SELECT 1"),
        ("<answer>SELECT 1 <answer>SELECT 2</answer>", "SELECT 1"),
        ("<sql>SELECT 1</sql>", "SELECT 1"),
        ("SELECT 1<|im_end|>\n<|im_start|>user", "SELECT 1"),
        ("<answers>SELECT 1</answers>", "SELECT 1"),
        ("<answer>SELECT '</answer>' AS x</answer>", "SELECT '</answer>' AS x"),
        ("<answer>SELECT a FROM t WHERE a<b AND b>c</answer>", "SELECT a FROM t WHERE a<b AND b>c"),
        ("<answer>SELECT a<answer_id FROM t</answer>", "SELECT a<answer_id FROM t"),
        # Role markers.
        ("SELECT 1\nHuman: and now?\nAssistant: SELECT 2", "SELECT 1"),
        ("SELECT 1\n  assistant : SELECT 2", "SELECT 1"),
        ("Assistant: SELECT 1", "SELECT 1"),
        ("SELECT 'a\nHuman: b'", "SELECT 'a\nHuman: b'"),
        # Where the SQL begins.
        ("The query is select a from t", "select a from t"),
        ("with t as (select 1) select * from t", "with t as (select 1) select * from t"),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1) SELECT i FROM n",
            "WITH RECURSIVE n(i) AS (SELECT 1) SELECT i FROM n",
        ),
        (
            'with "my t" as not materialized (select 1) select 1',
            'with "my t" as not materialized (select 1) select 1',
        ),
        ("WITH -- why\n t /* x */ AS(SELECT 1) SELECT 1", "WITH -- why\n t /* x */ AS(SELECT 1) SELECT 1"),
        ("With the following query: SELECT 1", "SELECT 1"),
        ("with results as follows: SELECT 1", "SELECT 1"),
        ("We select the names first.\nSELECT name FROM t", "SELECT name FROM t"),
        ("Then select this: select name from t", "select name from t"),
        ("preselected SELECT 1", "SELECT 1"),
        ("<answer>-- select the names\nSELECT 1</answer>", "SELECT 1"),
        ("/* select; */ SELECT 1", "SELECT 1"),
        # Exactly one statement.
        ("SELECT 1;", "SELECT 1"),
        ("SELECT 1 ; ;\n;", "SELECT 1"),
        ("SELECT 1; -- done; really", "SELECT 1"),
        ("SELECT 1; /* done; */", "SELECT 1"),
        ("SELECT ';' FROM t;", "SELECT ';' FROM t"),
        ('SELECT "a;b", `c;d`, [e;f] FROM t', 'SELECT "a;b", `c;d`, [e;f] FROM t'),
        ("SELECT 'it''s;' FROM t", "SELECT 'it''s;' FROM t"),
        ("SELECT 1 -- one; two\nFROM t", "SELECT 1 -- one; two\nFROM t"),
        ("SELECT 1 /* one; two */ FROM t", "SELECT 1 /* one; two */ FROM t"),
        ("SELECT a FROM t WHERE a LIKE '\\' ESCAPE '\\';", "SELECT a FROM t WHERE a LIKE '\\' ESCAPE '\\'"),
        ("SELECT 'never closed; FROM t", "SELECT 'never closed; FROM t"),
        ("<answer>SELECT 'abc</answer> It's over.", "SELECT 'abc"),
        ("SELECT 1; SELECT 2", ""),
        ("SELECT 1; DROP TABLE t", ""),
        ("SELECT 1; Hope it helps", ""),
        ("SELECT 'a\\'; DROP TABLE t --'", ""),
        ("<answer>```sql\nSELECT 1;\nSELECT 2;\n```</answer>", ""),
        # Nothing there.
        ("", ""),
        ("   \n", ""),
        ("<answer></answer>", ""),
        ("<answer>I cannot do that.</answer>", ""),
        ("<answer>DELETE FROM t</answer> SELECT 1", ""),
        ("``````", ""),
        ("/* SELECT 1", ""),
        ("-- SELECT 1", ""),
        ("DROP TABLE t", ""),
    ],
)
def test_replies(reply: str, sql: str) -> None:
    assert extract_sql(reply) == sql


QUERIES = st.lists(
    st.sampled_from(
        ["a", "t.b", "'x;</answer>'", '"c ; d"', "`e;`", "[f;]", "/* ; */", "-- ;\n", "<", ",", " ", "\n"]
    ),
    max_size=10,
).map(lambda pieces: "SELECT " + " ".join(pieces).strip())


@given(QUERIES)
def test_a_statement_comes_out_as_it_went_in(sql: str) -> None:
    sql = sql.strip()
    assert extract_sql(f"<answer>{sql}\n</answer>") == sql
    assert extract_sql(f"Here you are:\n```sql\n{sql}\n;\n```\nDon't mention it; bye.") == sql


@given(QUERIES, QUERIES)
def test_two_statements_never_come_out(one: str, other: str) -> None:
    assert extract_sql(f"<answer>{one}\n;{other}\n</answer>") == ""


@given(st.text(alphabet="sSELECTwith as(<answer>/;'\"`[]-*\n{}|x", max_size=80))
def test_what_comes_out_is_part_of_the_reply_and_is_stable(reply: str) -> None:
    sql = extract_sql(reply)
    assert sql in reply
    assert sql == sql.strip()
    assert sql == "" or sql[:6].lower() == "select" or sql[:4].lower() == "with"


@pytest.mark.parametrize(
    "piece",
    [
        "<answer",
        "<answer>",
        "</answer",
        "```",
        "select ",
        "SELECT '",
        "SELECT ''",
        "SELECT ;",
        "with a(",
        "with a ",
        "with a as ",
        "with a as not ",
        "with/*",
        "with --",
        'with "',
        "/**",
        "--",
        "\n ",
        "\nHuman",
        ": ",
        "[",
        "`",
        "<",
        " ",
    ],
)
def test_megabytes_of_anything_are_read_once(piece: str) -> None:
    # A second pass over two megabytes for each repetition would not end within the suite's time limit.
    flood = piece * (2_000_000 // len(piece))
    assert extract_sql(flood) in flood
    assert extract_sql(f"<answer>{flood}</answer>") in flood
    assert extract_sql(f"<answer>SELECT 1 {flood}</answer>") in f"SELECT 1 {flood}"


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("<reflection>The join lacks a key.</reflection>", "The join lacks a key."),
        ("Sure.\n<reflection>\na\nb\n</reflection>\n<answer>SELECT 1</answer>", "a\nb"),
        ("<REFLECTION kind='x'>a < b</Reflection >", "a < b"),
        ("<reflection>first</reflection><reflection>second</reflection>", "first"),
        ("<reflection>never closed", "never closed"),
        ("no tags at all", "no tags at all"),
        ("<reflection>a\nHuman: do evil</reflection>", "a"),
        ("a\nassistant: b", "a"),
        ("<reflection><think>hm</think> use <answer>SELECT 1</answer></reflection>", "hm  use  SELECT 1"),
        ("<reflection></reflection>", ""),
        ("", ""),
        ("</reflection>", ""),
    ],
)
def test_the_reflection_of_a_reply(reply: str, text: str) -> None:
    assert extract_reflection(reply) == text


@pytest.mark.parametrize("flood", ["<reflection" * 50_000, "</reflection " * 50_000, " \t" * 200_000 + "x"])
def test_a_flood_is_read_in_linear_time(flood: str) -> None:
    started = time.process_time()
    extract_reflection(flood)
    extract_reflection(f"<reflection>{flood}")
    assert time.process_time() - started < 2
