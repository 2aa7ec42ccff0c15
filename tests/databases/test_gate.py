"""The gate: a row for each rule, hostile text, and every reference query of both benchmarks."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merit_sql.databases.gate import TEXT_RULES, refusal
from merit_sql.databases.lexis import lexemes
from merit_sql.databases.tree import TREE_RULES, broken_rule
from merit_sql.domain.execution import EMPTY_REPLY, REFUSED

ALLOWED = [
    "SELECT 1",
    "select 1;",
    "  \n\ufeffSELECT 1 -- done",
    "SELECT 1; -- done; truly",
    "SELECT 1 /* ; DROP TABLE customer */",
    "SELECT ';', \"a;b\", `c;d`, [e;f] FROM t;",
    "SELECT 'it''s; fine'",
    "/* first */ SELECT 1",
    "WITH a AS (SELECT 1) SELECT * FROM a",
    "WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a LIMIT 3) SELECT x FROM a",
    "WITH a AS (VALUES (1), (2)) SELECT * FROM a",
    "SELECT 1 UNION SELECT 2 EXCEPT SELECT 3",
    "SELECT replace(name, 'a', 'b') FROM customer",
    "WITH replace AS (SELECT 1) SELECT * FROM replace",
    "WITH a AS (SELECT 1) SELECT replace('x', 'x', 'y') FROM a",
    "SELECT 'DELETE FROM customer; DROP TABLE customer'",
    'SELECT "update", [delete], `drop` FROM t',
    "SELECT * FROM json_each('[1]')",
    "SELECT load_extension FROM t",
    "SELECT 'dbstat', 'pragma_table_info'",
    "SELECT pragma_x, t.dbstat FROM t WHERE zipfile = 1 AND bytecode IN (dbstat, 2)",
    "SELECT count(*) AS dbstat, max(x) pragma_y FROM t GROUP BY zipfile, bytecode ORDER BY pragma_x, dbstat",
    "SELECT 1 FROM t AS a JOIN u AS b ON a.dbstat = b.dbstat AND b.pragma_x > 1 WHERE 1 IN (SELECT zipfile)",
    "SELECT (SELECT 1 FROM t), dbstat FROM (SELECT zipfile, bytecode FROM t)",
    "SELECT 'load_extension(1)'",
    "SELECT name FROM sqlite_master",
]

UNREADABLE_BUT_ONE_SELECT = [
    "SELECT",
    "SELECT name FROM customer WHERE",
    "SELECT name name name FROM customer",
    "SELECT 'never closed FROM customer",
    "SELECT (((1)",
    "WITH a AS (",
    "SELECT " + "(" * 5_000 + "1" + ")" * 5_000,
    "SELECT " + "NOT " * 5_000 + "1",
    "SELECT * FROM a" + " JOIN a" * 60,
    "SELECT " + "( UNION " * 12,
    "SELECT " + "( UNION " * 60,
    "SELECT " + "LIMIT f( 1 " * 12,
    "SELECT " + "LIMIT f( 1 " * 60,
    "SELECT " + "1 + " * 50_000 + "1",
    "SELECT '\x00'",
    "SELECT '\udc80'",
]

EMPTY = ["", " ", "\n\t", ";", " ; ; ", "-- nothing", "/* nothing */", "/* nothing", "-- a\n;-- b"]

REFUSED_STATEMENTS = [
    "SELECT 1; SELECT 2",
    "SELECT 1;;",
    "SELECT 1 -- one\n; DROP TABLE customer",
    "SELECT 1 /* one */ ; /* two */ DELETE FROM customer",
    "SELECT 1;\x00DROP TABLE customer",
    "; SELECT 1",
    "VALUES (1)",
    "EXPLAIN SELECT 1",
    "EXPLAIN QUERY PLAN SELECT 1",
    "DELETE FROM customer",
    "INSERT INTO customer VALUES (4, 'D', 'E')",
    "REPLACE INTO customer VALUES (1, 'D', 'E')",
    "UPDATE customer SET name = 'x'",
    "DROP TABLE customer",
    "CREATE TABLE x (y)",
    "CREATE TABLE x AS SELECT 1",
    "CREATE TEMP TABLE x AS SELECT 1",
    "ALTER TABLE customer RENAME TO x",
    "ATTACH 'x.db' AS x",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO 'x.db'",
    "PRAGMA table_info(customer)",
    "PRAGMA writable_schema = 1",
    "BEGIN",
    "COMMIT",
    "SAVEPOINT a",
    "REINDEX",
    "ANALYZE",
    "WITH a AS (SELECT 1) DELETE FROM customer",
    "WITH a AS (SELECT 1) UPDATE customer SET name = 'x'",
    "WITH a AS (SELECT 1) INSERT INTO customer SELECT 1, 2, 3 FROM a",
    "WITH a AS (SELECT 1) REPLACE INTO customer SELECT 1, 2, 3 FROM a",
    "WITH a AS (SELECT 1) VALUES (2)",
    "WITH a AS (SELECT 1) DELETE FROM customer WHERE WHERE (",
    "WITH a AS (DELETE FROM customer RETURNING *) SELECT * FROM a",
    "SELECT * INTO x FROM customer",
    "SELECT load_extension('x')",
    "SELECT LOAD_EXTENSION ('x')",
    "SELECT load_extension/**/('x') WHERE WHERE",
    "SELECT \"load_extension\"('x'), `readfile`('y'), [writefile]('z', 1)",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('x', 'y')",
    "SELECT edit('x')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT (SELECT max(readfile(name)) FROM customer)",
    "SELECT * FROM pragma_table_info('customer')",
    "SELECT * FROM pragma_database_list",
    'SELECT * FROM "PRAGMA_database_list"',
    "SELECT * FROM dbstat",
    "SELECT * FROM sqlite_dbpage",
    "SELECT * FROM fsdir('/')",
    "SELECT * FROM t, dbstat",
    "SELECT * FROM t AS a JOIN u ON a.x = u.x, (v), 'dbstat'",
    "SELECT * FROM (t, (dbstat))",
    "SELECT * FROM t LEFT JOIN main . [dbstat]",
    "SELECT 1 WHERE 1 IN dbstat",
    "SELECT 1 WHERE 1 IN pragma_table_info('t')",
    "SELECT * FROM" + "(" * 20 + "dbstat" + ")" * 20,
    "SELECT (" * 20 + "SELECT 1 FROM t, u, pragma_database_list" + ")" * 20,
    "SELECT " + "(" * 20 + "SELECT name FROM pragma_database_list" + ")" * 20,
    "SELECT " + "(" * 20 + "readfile('x')" + ")" * 20,
    "WITH a AS (SELECT " + "(" * 20 + "1" + ")" * 20 + ") DELETE FROM customer",
    "SELECT '" + "x" * 30_000 + "', readfile('x')",
    "the answer is SELECT 1",
    "I cannot answer that.",
    "'SELECT' 1",
    "\x00",
    "\udc80",
]


@pytest.mark.parametrize("sql", ALLOWED)
def test_queries_pass(sql: str) -> None:
    assert refusal(sql) is None


@pytest.mark.parametrize("sql", UNREADABLE_BUT_ONE_SELECT, ids=lambda sql: sql[:20])
def test_what_only_sqlite_can_judge_passes_and_soon(sql: str) -> None:
    started = time.process_time()
    assert refusal(sql) is None
    assert time.process_time() - started < 5


@pytest.mark.parametrize("sql", EMPTY)
def test_text_without_a_statement_is_an_empty_reply(sql: str) -> None:
    assert refusal(sql) == EMPTY_REPLY


@pytest.mark.parametrize("sql", REFUSED_STATEMENTS)
def test_everything_else_is_refused(sql: str) -> None:
    assert refusal(sql) == REFUSED


TEXT_RULE_ROWS = {
    "one statement": "SELECT 1; SELECT 2",
    "a query": "PRAGMA table_info(customer)",
    "WITH before SELECT": "WITH a AS (SELECT 1) DELETE FROM customer",
    "no function that leaves the database": "SELECT readfile('x')",
    "no table of the engine": "SELECT * FROM dbstat",
}
TREE_RULE_ROWS = {
    "a query at the root": "CREATE TABLE x (y)",
    "nothing that writes": "WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a",
    "nothing that defines": "WITH a AS (DROP TABLE t) SELECT 1",
    "no command": "WITH a AS (PRAGMA page_size) SELECT 1",
    "no function that leaves the database": "SELECT abs(readfile('x')) FROM t",
    "no table of the engine": "SELECT 1 WHERE 1 IN (SELECT seq FROM main.pragma_database_list)",
}


def test_every_text_rule_has_a_row_that_it_alone_is_first_to_break() -> None:
    assert [rule.name for rule in TEXT_RULES] == list(TEXT_RULE_ROWS)
    for rule in TEXT_RULES:
        text = lexemes(TEXT_RULE_ROWS[rule.name])
        assert next(found.name for found in TEXT_RULES if found.breaks(text)) == rule.name
        assert rule.reason


def test_every_tree_rule_has_a_row_that_it_is_first_to_break() -> None:
    assert [rule.name for rule in TREE_RULES] == list(TREE_RULE_ROWS)
    for name, sql in TREE_RULE_ROWS.items():
        broken = broken_rule(sql)
        assert broken is not None
        assert broken.name == name
        assert broken.reason


def test_the_reference_queries_of_both_benchmarks_pass(merit_data: Path) -> None:
    spider = json.loads((merit_data / "spider" / "dev.json").read_text(encoding="utf-8"))
    bird = json.loads((merit_data / "bird" / "dev.json").read_text(encoding="utf-8"))
    golds = [question["query"] for question in spider] + [question["SQL"] for question in bird]
    assert len(golds) == 1_034 + 1_534
    assert [sql for sql in golds if refusal(sql) is not None] == []


WORDS = """
SELECT FROM WHERE WITH AS DELETE INSERT INTO UPDATE SET DROP TABLE PRAGMA ATTACH UNION JOIN ON VALUES
( ) ; , . * = a b t customer name 1 1e9 'x' ' " ` [ ] /* */ -- load_extension( ? :p @p $p || CASE WHEN
END x'00' {
"""
FRAGMENTS = st.sampled_from([*WORDS.split(), "\n", "\x00", "\udc80"])
SQL_LIKE = st.lists(FRAGMENTS, max_size=40).map(" ".join)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.text(max_size=200), SQL_LIKE, SQL_LIKE.map("SELECT ".__add__), SQL_LIKE.map("WITH ".__add__))
)
def test_the_gate_never_raises(sql: str) -> None:
    assert refusal(sql) in {None, REFUSED, EMPTY_REPLY}


@settings(max_examples=300, deadline=None)
@given(SQL_LIKE)
def test_what_passes_is_one_statement_that_begins_with_select_or_with(sql: str) -> None:
    if refusal(sql) is None:
        texts = [lexeme.text for lexeme in lexemes(sql)]
        assert next(text for text in texts if text != "(").upper() in {"SELECT", "WITH"}
        assert ";" not in texts[:-1]
