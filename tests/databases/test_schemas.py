"""Schemas, from the benchmarks' files and from databases themselves."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from merit_sql.databases.catalogue import Catalogue
from merit_sql.databases.pool import WorkerPool
from merit_sql.databases.schemas import SchemaFile
from merit_sql.databases.sqlite import SqliteDatabase
from merit_sql.domain.errors import DataError
from merit_sql.domain.schema import Column, ColumnRef, Schema, Table


def test_a_database_describes_itself(tmp_path: Path, pool: WorkerPool) -> None:
    path = tmp_path / "school.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """
            CREATE TABLE Teacher (ID INTEGER PRIMARY KEY AUTOINCREMENT, "full name" VARCHAR(40));
            CREATE TABLE Course (
                code TEXT, term TEXT, lead INT REFERENCES teacher, hours REAL AS (2.5),
                PRIMARY KEY (term, code)
            ) WITHOUT ROWID;
            CREATE TABLE attends (
                pupil, c_term TEXT, c_code TEXT, helper INTEGER REFERENCES "Teacher"(id),
                FOREIGN KEY (c_term, c_code) REFERENCES COURSE
            );
            CREATE VIEW leads AS SELECT ID, code FROM Teacher JOIN Course ON lead = ID;
            CREATE VIEW broken AS SELECT a FROM nowhere;
            CREATE VIRTUAL TABLE notes USING fts5(body);
            CREATE INDEX by_lead ON Course (lead);
            INSERT INTO Teacher ("full name") VALUES ('Ada');
            """
        )
    schema = SqliteDatabase(path, database_id="school", pool=pool).schema
    assert schema == Schema(
        database_id="school",
        tables=(
            Table(
                name="Teacher",
                columns=(
                    Column(name="ID", type="INTEGER", primary_key=True),
                    Column(name="full name", type="VARCHAR(40)"),
                ),
            ),
            Table(
                name="Course",
                columns=(
                    Column(name="code", type="TEXT", primary_key=True),
                    Column(name="term", type="TEXT", primary_key=True),
                    Column(name="lead", type="INT", references=(ColumnRef("Teacher", "ID"),)),
                    Column(name="hours", type="REAL"),
                ),
            ),
            Table(
                name="attends",
                columns=(
                    Column(name="pupil", type=""),
                    Column(name="c_term", type="TEXT", references=(ColumnRef("Course", "term"),)),
                    Column(name="c_code", type="TEXT", references=(ColumnRef("Course", "code"),)),
                    Column(name="helper", type="INTEGER", references=(ColumnRef("Teacher", "ID"),)),
                ),
            ),
            Table(
                name="leads", columns=(Column(name="ID", type="INTEGER"), Column(name="code", type="TEXT"))
            ),
            Table(name="notes", columns=(Column(name="body", type=""),)),
        ),
    )


def test_a_schema_that_is_given_is_kept(corner_shop: SqliteDatabase, pool: WorkerPool) -> None:
    given = Schema(database_id="shop", tables=())
    assert SqliteDatabase(corner_shop.path, database_id="shop", pool=pool, schema=given).schema is given


def test_spiders_file_gives_original_names_types_and_keys(merit_data: Path) -> None:
    schema = SchemaFile(merit_data / "spider" / "tables.json").get("concert_singer")
    assert schema is not None
    assert [table.name for table in schema] == ["stadium", "singer", "concert", "singer_in_concert"]
    concert, link = schema.tables[2:]
    assert concert.columns == (
        Column(name="concert_ID", type="number", primary_key=True),
        Column(name="concert_Name", type="text"),
        Column(name="Theme", type="text"),
        Column(name="Stadium_ID", type="text", references=(ColumnRef("stadium", "Stadium_ID"),)),
        Column(name="Year", type="text"),
    )
    assert link.columns == (
        Column(
            name="concert_ID",
            type="number",
            primary_key=True,
            references=(ColumnRef("concert", "concert_ID"),),
        ),
        Column(name="Singer_ID", type="text", references=(ColumnRef("singer", "Singer_ID"),)),
    )


def test_birds_file_may_have_keys_of_several_columns(merit_data: Path) -> None:
    schema = SchemaFile(merit_data / "bird" / "dev_tables.json").get("toxicology")
    assert schema is not None
    connected = next(table for table in schema if table.name == "connected")
    assert [column.name for column in connected.columns if column.primary_key] == ["atom_id", "atom_id2"]


def test_every_entry_of_both_files_is_read(merit_data: Path) -> None:
    for path, count in (
        (merit_data / "spider" / "tables.json", 166),
        (merit_data / "bird" / "dev_tables.json", 11),
    ):
        entries = json.loads(path.read_text(encoding="utf-8"))
        assert len(entries) == count
        file = SchemaFile(path)
        for entry in entries:
            schema = file.get(entry["db_id"])
            assert schema is not None
            assert sum(len(table.columns) for table in schema) == len(entry["column_names_original"]) - 1
            references = sum(len(column.references) for table in schema for column in table.columns)
            assert references == len(entry["foreign_keys"])


def test_the_file_and_the_database_agree_on_tables(merit_data: Path) -> None:
    """But for SQLite's own sequence table, which Spider's file lists for world_1."""
    folder = merit_data / "spider" / "database"
    with Catalogue.from_spider(merit_data) as given, Catalogue.from_folder(folder) as own:
        assert list(given) == list(own)
        for name in given:
            listed = {table.name.lower() for table in given[name].schema} - {"sqlite_sequence"}
            assert listed == {table.name.lower() for table in own[name].schema}, name


@pytest.mark.parametrize(
    "text",
    ["not json", "{}", "[1]", '[{"name": "x"}]'],
)
def test_a_file_of_another_form_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tables.json"
    path.write_text(text)
    if text == "{}":
        assert SchemaFile(path).get("x") is None
        return
    with pytest.raises(DataError, match=r"tables\.json"):
        SchemaFile(path).get("x")


def test_an_entry_of_another_form_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tables.json"
    path.write_text('[{"db_id": "x", "table_names_original": ["t"]}]')
    with pytest.raises(DataError, match=r"tables\.json: the entry of x"):
        SchemaFile(path).get("x")


def test_no_file_has_no_schemas(tmp_path: Path) -> None:
    assert SchemaFile(tmp_path / "tables.json").get("x") is None


def test_a_file_that_is_no_database_cannot_describe_itself(tmp_path: Path, pool: WorkerPool) -> None:
    path = tmp_path / "text.sqlite"
    path.write_text("hello " * 1000)
    with pytest.raises(DataError, match=r"text\.sqlite: the schema cannot be read: file is not a database"):
        _ = SqliteDatabase(path, database_id="text", pool=pool).schema
