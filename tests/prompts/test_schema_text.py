"""The schema as prompts print it, held to what SQLite accepts."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from merit_sql.domain.schema import Column, ColumnRef, Schema, Table
from merit_sql.prompts.schema_text import name_text, render_schema, table_text

KEYWORDS = re.findall(
    r"\w+",
    """
    ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN
    BETWEEN BY CASCADE CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT
    CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH
    DISTINCT DO DROP EACH ELSE END ESCAPE EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST
    FOLLOWING FOR FOREIGN FROM FULL GENERATED GLOB GROUP GROUPS HAVING IF IGNORE IMMEDIATE IN INDEX
    INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS ISNULL JOIN KEY LAST LEFT LIKE LIMIT MATCH
    MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR ORDER OTHERS OUTER OVER
    PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY RAISE RANGE RECURSIVE REFERENCES REGEXP REINDEX
    RELEASE RENAME REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS SAVEPOINT SELECT SET TABLE TEMP
    TEMPORARY THEN TIES TO TRANSACTION TRIGGER UNBOUNDED UNION UNIQUE UPDATE USING VACUUM VALUES VIEW
    VIRTUAL WHEN WHERE WINDOW WITH WITHOUT
    """,
)


def test_a_line_for_each_column_with_its_keys(schema: Schema) -> None:
    assert (
        render_schema(schema)
        == """table singer:
  Singer_ID INT PRIMARY KEY
  `Full Name` VARCHAR(20)
table concert:
  singer INT PRIMARY KEY FOREIGN KEY -> singer.Singer_ID
  `order`"""
    )


def test_a_column_may_refer_to_several() -> None:
    column = Column(name="x", type="", references=(ColumnRef("a", "id"), ColumnRef("my b", "Id 2")))
    expected = "table t:\n  x FOREIGN KEY -> a.id FOREIGN KEY -> `my b`.`Id 2`"
    assert table_text(Table(name="t", columns=(column,))) == expected


def test_the_first_columns_of_a_table() -> None:
    table = Table(name="t", columns=tuple(Column(name=name, type="") for name in "abcd"))
    assert table_text(table, 2) == "table t:\n  a\n  b\n  (2 more columns)"
    assert table_text(table, 4) == "table t:\n  a\n  b\n  c\n  d"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Name", "Name"),
        ("_id2", "_id2"),
        ("Full Name", "`Full Name`"),
        ("FRPM (%)", "`FRPM (%)`"),
        ("2nd", "`2nd`"),
        ("Größe", "`Größe`"),
        ("a`b", "`a``b`"),
        ("a-b", "`a-b`"),
        ("Order", "`Order`"),
        ("two  spaces", "`two  spaces`"),
        (" led", "` led`"),
        ("x\ny", "`x y`"),
        ("</schema>", "`< /schema>`"),
        ("", "``"),
    ],
)
def test_names(name: str, shown: str) -> None:
    assert name_text(name) == shown


def test_an_endless_name_is_capped() -> None:
    shown = name_text("n" * 10_000)
    assert shown.endswith(" more characters]`")
    assert len(shown) <= 202


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_every_keyword_of_sqlite_can_be_used_as_it_is_shown(keyword: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f'CREATE TABLE "{keyword}" ("{keyword}" TEXT)')
        connection.execute(f"INSERT INTO \"{keyword}\" VALUES ('here')")
        shown = name_text(keyword)
        query = f"SELECT {shown}, t.{shown} FROM {shown} AS t WHERE {shown} = 'here' ORDER BY {shown}"
        assert connection.execute(query).fetchall() == [("here", "here")]


def test_names_of_the_real_databases_can_be_used_as_they_are_shown(merit_data: Path) -> None:
    paths = sorted(merit_data.glob("*/*database*/*/*.sqlite"))
    assert paths
    for path in paths:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            ).fetchall()
            for (table,) in tables:
                columns = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
                shown = ", ".join(f"t.{name_text(column)}" for (column,) in columns)
                cursor = connection.execute(f"SELECT {shown} FROM {name_text(table)} AS t LIMIT 0")
                assert [column[0] for column in cursor.description] == [column for (column,) in columns]
