"""Building the suite's databases: the same bytes every time, whole or not at all, whoever else builds."""

import hashlib
import json
import multiprocessing
import shutil
import sqlite3
from contextlib import closing
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from merit_sql.domain.errors import DataError
from merit_sql.eval.suites.build import build_database, build_mini

DATABASES = {"clinic_network", "publishing_house", "freight_lines", "live_venues", "research_grants"}


def hashes(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "schema.sql").write_text(
        "CREATE TABLE a (id INTEGER PRIMARY KEY, x REAL, t TEXT);"
        "CREATE TABLE b (a_id INTEGER REFERENCES a (id), n TEXT NOT NULL);"
    )
    (folder / "a.csv").write_text('id,x,t\n1,2.5,\n2,\\N,\\N\n3,4,"05, ""q"""\n')
    (folder / "b.csv").write_text("a_id,n\n1,one\n")
    return folder


def test_two_builds_have_the_same_bytes(tmp_path: Path) -> None:
    first, second = build_mini(tmp_path / "first"), build_mini(tmp_path / "second")
    assert hashes(first) == hashes(second)
    assert hashes(first).keys() == {f"{name}/{name}.sqlite" for name in DATABASES} | {"built.json"}
    assert first == tmp_path / "first"


def test_the_library_that_built_leaves_no_trace(tmp_path: Path) -> None:
    for path in build_mini(tmp_path / "mini").rglob("*.sqlite"):
        assert int.from_bytes(path.read_bytes()[96:100], "big") == 3_040_001
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_the_cache_is_where_it_goes_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERIT_CACHE", str(tmp_path / "cache"))
    folder = build_mini()
    assert folder.parent == tmp_path / "cache" / "suites"
    assert folder.name.startswith("mini-")
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_what_is_complete_is_left_alone(tmp_path: Path) -> None:
    folder = build_mini(tmp_path / "mini")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    build_mini(folder)
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "damage", ["missing", "torn", "altered", "no seal", "torn seal", "foreign seal", "bare seal"]
)
def test_what_is_not_complete_is_built_again(tmp_path: Path, damage: str) -> None:
    folder = build_mini(tmp_path / "mini")
    whole = hashes(folder)
    victim = folder / "live_venues" / "live_venues.sqlite"
    seal = folder / "built.json"
    match damage:
        case "missing":
            shutil.rmtree(victim.parent)
        case "torn":
            victim.write_bytes(victim.read_bytes()[:5000])
        case "altered":
            with closing(sqlite3.connect(victim, isolation_level=None)) as connection:
                connection.execute("DELETE FROM sale WHERE sale_id = 7")
        case "no seal":
            seal.unlink()
        case "torn seal":
            seal.write_text(seal.read_text()[:100])
        case "foreign seal":
            seal.write_text(seal.read_text().replace('"sources": "', '"sources": "0'))
        case "bare seal":
            victim.unlink()
            seal.write_text(json.dumps(json.loads(seal.read_text()) | {"databases": {}}))
    assert hashes(folder) != whole
    assert hashes(build_mini(folder)) == whole


def test_several_may_build_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(3) as pool:
        built = pool.map(build_mini, [tmp_path / "mini"] * 6, chunksize=1)
    assert set(built) == {tmp_path / "mini"}
    assert hashes(tmp_path / "mini") == hashes(build_mini(tmp_path / "alone"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone", "mini"]


def test_fields_become_what_their_column_declares(source: Path, tmp_path: Path) -> None:
    build_database(source, tmp_path / "tiny.sqlite")
    with closing(sqlite3.connect(tmp_path / "tiny.sqlite")) as connection:
        rows = connection.execute("SELECT id, x, typeof(x), t, typeof(t) FROM a").fetchall()
    assert rows == [
        (1, 2.5, "real", "", "text"),
        (2, None, "null", None, "null"),
        (3, 4.0, "real", '05, "q"', "text"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "id,x,t\n1,2.5,p\n2,wide,q\n", "a.csv, line 3: .*'wide'"),
        ("a.csv", "id,x,t\n1,2.5\n", "a.csv, line 2: 2 fields for 3 columns"),
        ("a.csv", "id,t,x\n1,p,2.5\n", "a.csv: header"),
        ("a.csv", "", "a.csv: header"),
        ("a.csv", "id,x,t\n1,2,p\n1,3,q\n", "a.csv, line 3: UNIQUE"),
        ("b.csv", "a_id,n\n1,\\N\n", "b.csv, line 2: NOT NULL"),
        ("b.csv", "a_id,n\n9,nine\n", "b, row 1: no such row in a"),
        ("c.csv", "id\n1\n", r"no table in schema.sql for the CSV files of \['c'\]"),
    ],
)
def test_a_csv_that_does_not_fit_is_refused(
    source: Path, tmp_path: Path, name: str, text: str, message: str
) -> None:
    (source / name).write_text(text)
    with pytest.raises(DataError, match=message):
        build_database(source, tmp_path / "tiny.sqlite")


def test_the_empty_string_and_null_are_told_apart_in_the_sources() -> None:
    with as_file(files("merit_sql.eval.suites") / "mini") as sources:
        nulls = [path.name for path in sources.glob("*/*.csv") if ",\\N" in path.read_text(encoding="utf-8")]
        carriage_returns = [path for path in sources.rglob("*.csv") if b"\r" in path.read_bytes()]
    assert len(nulls) >= 15
    assert carriage_returns == []
