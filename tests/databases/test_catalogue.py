"""Catalogues over benchmark trees, folders and files; and the reference queries, all of them run."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from merit_sql.databases.catalogue import Catalogue
from merit_sql.domain.errors import DataError
from merit_sql.domain.execution import TextDecoding

Snapshot = Callable[[Path], dict[str, str]]


def make(path: Path, value: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("INSERT INTO t VALUES (?)", (value,))
        connection.commit()
    return path


def test_spider_has_nineteen_databases_and_not_the_twentieth(merit_data: Path) -> None:
    with Catalogue.from_spider(merit_data) as catalogue:
        assert len(catalogue) == 19
        assert "wta_1" not in catalogue
        assert catalogue["pets_1"].database_id == "pets_1"
        assert catalogue["pets_1"].path.name == "pets_1.sqlite"
        assert [table.name for table in catalogue["pets_1"].schema] == ["Student", "Has_Pet", "Pets"]
        assert catalogue.variants("pets_1") == (catalogue["pets_1"],)


def test_bird_has_the_one_database_that_is_there(merit_data: Path) -> None:
    with Catalogue.from_bird(merit_data) as catalogue:
        assert list(catalogue) == ["superhero"]
        assert catalogue["superhero"].execute("SELECT count(*) FROM superhero").rows == [(750,)]


@pytest.mark.parametrize("name", ["../secret", "..", "", "/etc", "a/../a", "A", "a/a.sqlite"])
def test_a_name_never_becomes_a_path(tmp_path: Path, name: str) -> None:
    make(tmp_path / "spider" / "secret" / "secret.sqlite")
    make(tmp_path / "spider" / "database" / "a" / "a.sqlite")
    with Catalogue.from_spider(tmp_path) as catalogue:
        assert list(catalogue) == ["a"]
        assert name not in catalogue
        assert catalogue.get(name) is None
        with pytest.raises(KeyError):
            catalogue.variants(name)


def test_a_tree_without_databases_or_schemas_is_an_empty_catalogue(tmp_path: Path) -> None:
    (tmp_path / "spider" / "database" / "empty").mkdir(parents=True)
    assert list(Catalogue.from_spider(tmp_path)) == []
    assert list(Catalogue.from_bird(tmp_path)) == []


def test_without_an_entry_in_the_file_the_database_describes_itself(tmp_path: Path) -> None:
    make(tmp_path / "spider" / "database" / "a" / "a.sqlite")
    (tmp_path / "spider" / "tables.json").write_text("[]")
    with Catalogue.from_spider(tmp_path) as catalogue:
        assert [table.name for table in catalogue["a"].schema] == ["t"]


def test_variants_are_all_the_databases_of_a_folder_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "spider" / "database" / "a"
    for number, name in enumerate(["a.sqlite", "a_z.sqlite", "a0.sqlite.bak"]):
        make(folder / name, number)
    for name in ["a.sqlite-journal", "a.sqlite-wal", "a.sqlite-shm", "readme.txt"]:
        (folder / name).touch()
    (folder / "x.sqlite.d").mkdir()
    with Catalogue.from_spider(tmp_path) as catalogue:
        variants = catalogue.variants("a")
        assert [variant.path.name for variant in variants] == ["a.sqlite", "a0.sqlite.bak", "a_z.sqlite"]
        assert [variant.execute("SELECT x FROM t").rows for variant in variants] == [[(0,)], [(2,)], [(1,)]]
        assert variants[0] is catalogue["a"]
        assert variants[1].schema is catalogue["a"].schema
        assert catalogue.variants("a") is variants


def test_a_folder_is_searched_one_folder_deep(tmp_path: Path) -> None:
    make(tmp_path / "one.db", 1)
    make(tmp_path / "inner" / "two.sqlite3", 2)
    make(tmp_path / "inner" / "deeper" / "three.sqlite", 3)
    (tmp_path / "notes.sqlite").write_text("no database")
    (tmp_path / "empty.sqlite").touch()
    with Catalogue.from_folder(tmp_path) as catalogue:
        assert list(catalogue) == ["one", "two"]
        assert [catalogue[name].execute("SELECT x FROM t").rows for name in catalogue] == [[(1,)], [(2,)]]
        assert catalogue.variants("one") == (catalogue["one"],)


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    make(tmp_path / "a" / "same.sqlite")
    make(tmp_path / "b" / "same.db")
    with pytest.raises(DataError, match=r"a/same\.sqlite and .*b/same\.db would both be same"):
        Catalogue.from_folder(tmp_path)


def test_one_file_is_a_catalogue_too(tmp_path: Path) -> None:
    with Catalogue.from_file(make(tmp_path / "only.sqlite")) as catalogue:
        assert list(catalogue) == ["only"]
        assert catalogue["only"].schema.database_id == "only"


def test_what_is_not_there_or_not_a_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("hello")
    with pytest.raises(DataError, match=r"gone\.sqlite: no such file"):
        Catalogue.from_file(tmp_path / "gone.sqlite")
    with pytest.raises(DataError, match=r"text\.sqlite: not an SQLite database"):
        Catalogue.from_file(tmp_path / "text.sqlite")
    with pytest.raises(DataError, match=r"gone: no such folder"):
        Catalogue.from_folder(tmp_path / "gone")


def test_making_a_catalogue_is_cheap(tmp_path: Path) -> None:
    make(tmp_path / "spider" / "database" / "a" / "a.sqlite")
    script = (
        "import sys, subprocess\n"
        "from pathlib import Path\n"
        "subprocess.Popen = None\n"
        "from merit_sql.databases.catalogue import Catalogue\n"
        "assert list(Catalogue.from_spider(Path(sys.argv[1]))) == ['a']\n"
        "heavy = {'sqlglot', 'langgraph', 'torch', 'chromadb', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)


def test_every_reference_query_gives_what_sqlite_alone_gives(merit_data: Path, snapshot: Snapshot) -> None:
    spider = json.loads((merit_data / "spider" / "dev.json").read_text(encoding="utf-8"))
    bird = json.loads((merit_data / "bird" / "dev.json").read_text(encoding="utf-8"))
    with Catalogue.from_spider(merit_data) as spiders, Catalogue.from_bird(merit_data) as birds:
        asked = {(question["db_id"], question["query"]) for question in spider}
        asked |= {(question["db_id"], question["SQL"]) for question in bird}
        members = {**spiders, **birds}
        questions = sorted((name, sql) for name, sql in asked if name in members)
        folders = {database.path.parent for database in members.values()}
        before = {folder: snapshot(folder) for folder in folders}
        for name, sql in questions:
            database = members[name]
            execution = database.execute(sql, decoding=TextDecoding.IGNORE)
            with closing(sqlite3.connect(f"file:{database.path}?immutable=1", uri=True)) as plain:
                plain.text_factory = lambda text: text.decode("utf-8", "ignore")
                assert execution.rows == plain.execute(sql).fetchall(), (name, sql)
        assert {folder: snapshot(folder) for folder in folders} == before
    assert len(questions) > 600
