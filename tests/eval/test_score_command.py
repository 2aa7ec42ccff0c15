"""``merit score`` from end to end on a small tree of its own, and its speed and figures on Spider."""

import json
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from merit_sql.app.cli import main

PLAIN = [0, [0, [0, 1, False], None]]
STRUCTURE = {
    "from": {"table_units": [["table_unit", 0]], "conds": []},
    "select": [False, [PLAIN]],
    "where": [],
    "groupBy": [],
    "having": [],
    "orderBy": [],
    "limit": None,
    "intersect": None,
    "union": None,
    "except": None,
}
SPIDER = [
    ("shop", "SELECT name FROM item", STRUCTURE),
    ("shop", "SELECT price FROM item ORDER BY price", {**STRUCTURE, "orderBy": ["asc", [PLAIN[1]]]}),
    ("gone", "SELECT 1", STRUCTURE),
    (
        "shop",
        "SELECT missing FROM item",
        {**STRUCTURE, "limit": 1, "where": [[False, 2, PLAIN[1], "1", None]]},
    ),
]
BIRD = [
    ("hero", "SELECT name, price FROM item", "simple"),
    ("gone", "SELECT 1", "moderate"),
    ("hero", "SELECT missing FROM item", "challenging"),
]


def database(path: Path) -> None:
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE item (name TEXT, price INTEGER)")
    connection.executemany("INSERT INTO item VALUES (?, ?)", [("tea", 2), ("rum", 3)])
    connection.commit()
    connection.close()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    database(root / "spider" / "database" / "shop" / "shop.sqlite")
    database(root / "bird" / "dev_databases" / "hero" / "hero.sqlite")
    (root / "spider" / "tables.json").write_text("[]")
    (root / "bird" / "dev_tables.json").write_text("[]")
    spider = [{"db_id": db, "question": "?", "query": sql, "sql": parsed} for db, sql, parsed in SPIDER]
    bird = [{"db_id": db, "question": "?", "SQL": sql, "difficulty": level} for db, sql, level in BIRD]
    (root / "spider" / "dev.json").write_text(json.dumps(spider))
    (root / "bird" / "dev.json").write_text(json.dumps(bird))
    return root


def merit(suite: str, data: Path, predictions: str, *options: str) -> int:
    file = data / "predictions.sql"
    file.write_text(predictions)
    arguments = ["--suite", suite, "--data", str(data), "--predictions", str(file), "--jobs", "2"]
    return main(["score", *arguments, *options])


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_spider_writes_one_object_a_question(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "verdicts.jsonl"
    predictions = "SELECT name FROM item ORDER BY 1\tshop\nSELECT name FROM\n\nSELECT 1\n"
    assert merit("spider", data, predictions, "--output", str(output)) == 0
    assert written(output) == [
        {"id": 0, "db_id": "shop", "official": 1, "strict": 1, "status": "CORRECT", "error": None},
        {
            "id": 1,
            "db_id": "shop",
            "official": 0,
            "strict": 0,
            "status": "EXECUTION_ERROR",
            "error": "incomplete input",
        },
        {
            "id": 2,
            "db_id": "gone",
            "official": None,
            "strict": None,
            "status": None,
            "error": "the question's database is missing",
        },
        {
            "id": 3,
            "db_id": "shop",
            "official": None,
            "strict": None,
            "status": None,
            "error": "the reference query does not run",
        },
    ]


def test_bird_reads_its_json_and_writes_the_metric_asked_for(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "verdicts.jsonl"
    mark = "\t----- bird -----\t"
    document = {
        "1": f"SELECT 1{mark}gone",
        "0": f"SELECT name FROM item{mark}hero",
        "2": f"SELECT 1{mark}hero",
    }
    options = ["--metric", "soft-f1", "--output", str(output)]
    assert merit("bird", data, json.dumps(document), *options) == 0
    rows = written(output)
    assert [row["official"] for row in rows] == [pytest.approx(2 / 3), None, 0]
    assert [row["strict"] for row in rows] == [0, None, None]
    assert rows[0]["status"] == "DENOTATION_MISMATCH"


def test_the_table_keeps_the_unscored_apart_and_fits_80_columns(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert merit("spider", data, "SELECT name FROM item\nSELECT 1\n\n\n") == 0
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert max(map(len, lines)) <= 80
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.split()}
    assert rows["total"] == ["4", "2", "50.00", "50.00"]
    assert rows["easy"] == ["3", "1", "50.00", "50.00"]
    assert rows["medium"] == ["1", "1", "-", "-"]
    assert rows["gone"] == ["1", "1", "-", "-"]
    assert rows["shop"] == ["3", "1", "50.00", "50.00"]
    assert "unscored: 1 (the question's database is missing): gone 1" in lines
    assert "unscored: 1 (the reference query does not run): shop 1" in lines


def test_databases_are_chosen_after_the_whole_file_is_checked(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "verdicts.jsonl"
    options = ["--databases", "gone", "--output", str(output)]
    assert merit("spider", data, "\n\nSELECT 1\n\n", *options) == 0
    assert [row["id"] for row in written(output)] == [2]


@pytest.mark.parametrize(
    ("suite", "predictions", "options", "message"),
    [
        pytest.param("spider", "SELECT 1\n", [], "holds 1 predictions, but the dataset has 4", id="short"),
        pytest.param("spider", "\n" * 5, [], "holds 5 predictions, but the dataset has 4", id="long"),
        pytest.param("bird", '{"0": "a"}', [], "missing: 1, 2", id="ids missing"),
        pytest.param(
            "spider", "\n" * 4, ["--databases", "shop,spoh"], "'spoh'; there are: gone, shop", id="name"
        ),
        pytest.param("spider", "\n" * 4, ["--metric", "ves"], "--metric ves is BIRD's", id="metric"),
        pytest.param(
            "bird", "\n" * 3, ["--distinct", "strip"], "--distinct strip is Spider's", id="distinct"
        ),
    ],
)
def test_an_error_is_one_line_and_nothing_is_written(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    suite: str,
    predictions: str,
    options: list[str],
    message: str,
) -> None:
    output = tmp_path / "verdicts.jsonl"
    assert merit(suite, data, predictions, "--output", str(output), *options) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not output.exists()


def test_an_output_that_cannot_be_written_is_an_error_before_scoring(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for output, message in (
        (tmp_path / "absent" / "verdicts.jsonl", "does not exist"),
        (tmp_path, "is a folder"),
        (data / "predictions.sql", "is the predictions file"),
        (Path("/dev/null"), "is no ordinary file"),
    ):
        assert merit("spider", data, "\n" * 4, "--output", str(output)) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.out == ""
    assert (data / "predictions.sql").read_text() == "\n" * 4


def test_an_output_that_is_a_link_stays_one_and_its_target_is_written(data: Path, tmp_path: Path) -> None:
    target, link = tmp_path / "target.jsonl", tmp_path / "link.jsonl"
    target.write_text("old\n")
    link.symlink_to(target)
    assert merit("spider", data, "\n" * 4, "--output", str(link)) == 0
    assert link.is_symlink()
    assert len(written(target)) == 4


@pytest.mark.parametrize("options", [["--timeout", "0"], ["--timeout", "nan"], ["--jobs", "0"]])
def test_numbers_that_mean_nothing_are_usage_errors(
    data: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        merit("spider", data, "\n" * 4, *options)
    assert stop.value.code == 2
    assert options[0] in capsys.readouterr().err


def test_hostile_predictions_change_nothing_and_are_scored(data: Path, tmp_path: Path) -> None:
    file = data / "spider" / "database" / "shop" / "shop.sqlite"
    before = file.read_bytes()
    output = tmp_path / "verdicts.jsonl"
    hostile = [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "DROP TABLE item",
        "SELECT '\ud7ff\x00' FROM item",
        "ATTACH '/tmp/merit-hostile' AS x",
    ]
    options = ["--timeout", "0.5", "--output", str(output)]
    assert merit("spider", data, "\n".join(hostile), *options) == 0
    assert [row["official"] for row in written(output)] == [0, 0, None, None]
    assert [row["status"] for row in written(output)] == ["TIMEOUT", "EXECUTION_ERROR", None, None]
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["shop.sqlite"]


def test_heavy_libraries_stay_out(data: Path) -> None:
    predictions = data / "predictions.sql"
    predictions.write_text("SELECT name FROM item\nSELECT DISTINCT price FROM item\n\n\n")
    heavy = [
        "torch",
        "chromadb",
        "langgraph",
        "langchain_core",
        "sentence_transformers",
        "transformers",
        "openai",
    ]
    program = (
        "import sys\n"
        "from merit_sql.app.cli import main\n"
        f"status = main(['score', '--suite', 'spider', '--data', {str(data)!r}, '--distinct', 'strip',\n"
        f"               '--predictions', {str(predictions)!r}])\n"
        f"loaded = [name for name in {heavy!r} if name in sys.modules]\n"
        "sys.exit(f'loaded: {loaded}' if loaded or status else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_spider_scores_in_seconds_and_the_jobs_change_nothing(merit_data: Path, tmp_path: Path) -> None:
    outputs = []
    for jobs in ("1", "3"):
        output = tmp_path / f"{jobs}.jsonl"
        arguments = [
            *("--suite", "spider", "--data", str(merit_data), "--jobs", jobs, "--output", str(output)),
            *("--predictions", str(merit_data / "predictions" / "spider" / "dbgpt-hub-lora.sql")),
        ]
        started = time.monotonic()
        assert main(["score", *arguments]) == 0
        assert time.monotonic() - started < 20
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1]
    rows = written(tmp_path / "1.jsonl")
    assert sum(row["official"] or 0 for row in rows) == 576
    assert [row["db_id"] for row in rows if row["official"] is None] == ["wta_1"] * 62
