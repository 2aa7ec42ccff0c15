"""Sheets go to a spreadsheet and back: nothing runs, nothing is lost, and every mistake is named."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from merit_sql.domain.errors import DataError
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.status import Status
from merit_sql.eval.sheets import (
    Key,
    key_path,
    neutralise,
    read_key,
    read_sheet,
    restore,
    write_sheet,
)
from merit_sql.eval.validation import Failure

HEADER = "id,database,question,sql,status,error,both,annotator_1,annotator_2"


def failure(query: str, *, sql: str = "SELECT 1", error: str = "", question: str = "Q?") -> Failure:
    return Failure(
        query_id=query,
        database_id="d",
        question=question,
        sql=sql,
        status=Status.EXECUTION_ERROR if error else Status.DENOTATION_MISMATCH,
        error=error,
    )


def cells(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def fill(
    path: Path, labels: Mapping[str, Sequence[str]], change: Callable[[dict[str, str]], None] = lambda _: None
) -> None:
    """Save the sheet again with the labels of its rows, by id, as a spreadsheet would."""
    rows = cells(path)
    for row in rows:
        row["annotator_1"], row["annotator_2"] = labels.get(row["id"], ("", ""))
        change(row)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-- a comment", "'-- a comment"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\rx", "'\rx"),
        (" =cmd|' /C calc'!A0", "' =cmd|' /C calc'!A0"),
        ("＝1", "'＝1"),
        ("'=1", "''=1"),
        ("'quoted'", "'quoted'"),
        ("SELECT a = 1 - 2", "SELECT a = 1 - 2"),
        ("", ""),
    ],
)
def test_a_cell_that_would_run_is_text(text: str, cell: str) -> None:
    assert neutralise(text) == cell
    assert restore(cell) == text


@given(st.text(alphabet="'=+-@ \t\r\na1", max_size=8) | st.text(max_size=12))
@example("''=")
def test_neutralising_can_be_undone(text: str) -> None:
    cell = neutralise(text)
    assert restore(cell) == text
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


def test_a_sheet_holds_the_failures_and_not_their_types(tmp_path: Path) -> None:
    sheet = tmp_path / "labels.csv"
    sample = [
        failure("7", sql='=HYPERLINK("x")', error='no such column: a\nb,"c"'),
        failure("3", question="Wie groß? 😀"),
    ]
    write_sheet(sheet, sample, [*sample, failure("9")], run="abc", seed=5)
    assert cells(sheet)[0] == {
        "id": "7",
        "database": "d",
        "question": "Q?",
        "sql": '\'=HYPERLINK("x")',
        "status": "EXECUTION_ERROR",
        "error": 'no such column: a\nb,"c"',
        "both": "yes",
        "annotator_1": "",
        "annotator_2": "",
    }
    assert cells(sheet)[1]["question"] == "Wie groß? 😀"
    text = sheet.read_text(encoding="utf-8")
    assert not any(kind.value in text for kind in FailureKind)
    assert json.loads(key_path(sheet).read_text()) == {
        "format": 1,
        "run": "abc",
        "seed": 5,
        "population": {"Result Mismatch": 2, "Schema Linking": 1},
        "drawn": {"7": "Schema Linking", "3": "Result Mismatch"},
    }


def test_fifty_rows_are_for_both(tmp_path: Path) -> None:
    sample = [failure(str(number)) for number in range(60)]
    write_sheet(tmp_path / "labels.csv", sample, sample, run="r", seed=0)
    assert [row["both"] for row in cells(tmp_path / "labels.csv")] == ["yes"] * 50 + [""] * 10


def test_labels_come_back(tmp_path: Path) -> None:
    sheet = tmp_path / "labels.csv"
    sample = [failure("1", error="no such table: =x"), failure("2"), failure("3")]
    write_sheet(sheet, sample, sample, run="r", seed=0)
    fill(sheet, {"1": ("Schema Linking", " filter/VALUE "), "3": ("", "Unknown")})
    rows = read_sheet(sheet, read_key(key_path(sheet)))
    assert [(row.query_id, row.predicted.value, row.first, row.second) for row in rows] == [
        ("1", "Schema Linking", FailureKind.SCHEMA_LINKING, FailureKind.FILTER_VALUE),
        ("2", "Result Mismatch", None, None),
        ("3", "Result Mismatch", None, FailureKind.UNKNOWN),
    ]


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT '\ud800'", "no such column: \ud800"),
        ("x" * 500_000, 'near "' + "y" * 400_000 + '": syntax error'),
        ("\ud800" * 200_000, "\ud800" * 200_000 + " timed out"),
        ("SELECT\x00 1", "no such table: \x00"),
        ("=\r\n1;\"',", "-\r\n=a,\"'\rno such table: t"),
    ],
)
def test_hostile_cells_come_back_with_their_type(tmp_path: Path, sql: str, error: str) -> None:
    sheet = tmp_path / "labels.csv"
    sample = [failure("1", sql=sql, error=error)]
    write_sheet(sheet, sample, sample, run="r", seed=0)
    (row,) = read_sheet(sheet, read_key(key_path(sheet)))
    assert row.predicted is sample[0].predicted
    assert all(len(cell) < 32_767 for cell in cells(sheet)[0].values())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    sheet = tmp_path / "labels.csv"
    sample = [failure("1")]
    write_sheet(sheet, sample, sample, run="r", seed=0)
    before = sheet.read_bytes()
    with pytest.raises(DataError, match=r"labels\.csv exists already"):
        write_sheet(sheet, sample, sample, run="r", seed=1)
    assert sheet.read_bytes() == before
    sheet.unlink()
    with pytest.raises(DataError, match=r"labels\.key\.json exists already"):
        write_sheet(sheet, sample, sample, run="r", seed=1)
    assert not sheet.exists()
    with pytest.raises(DataError, match="cannot be written"):
        write_sheet(tmp_path / "none" / "labels.csv", sample, sample, run="r", seed=1)
    with pytest.raises(DataError, match="exists already"):
        write_sheet(tmp_path, sample, sample, run="r", seed=1)


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (
            "5,d,q,s,EXECUTED,,,Logic,",
            r"row 3 \(id 5\), annotator_1: 'Logic' is no failure type; allowed: Result",
        ),
        ("5,d,q,s,EXECUTED,,,,Schema", r"row 3 \(id 5\), annotator_2: 'Schema'"),
        ("1,d,q,s,EXECUTED,,,,", r"row 3 \(id 1\): has the same id as row 2"),
        (",d,q,s,EXECUTED,,,,", r"row 3 \(id missing\): has no id"),
        ("5,d,q,s,CORRECT,,,,", r"row 3 \(id 5\): 'CORRECT' is no status of a failure"),
        ("5,d,q,s,wrong,,,,", r"row 3 \(id 5\): 'wrong' is no status"),
        ("5,d", r"row 3: has 2 cells, the header 9"),
        ('5,"d', "is no CSV"),
    ],
)
def test_a_mistake_is_named_with_its_row(tmp_path: Path, row: str, named: str) -> None:
    sheet = tmp_path / "labels.csv"
    sheet.write_text(f"{HEADER}\n1,d,q,s,DENOTATION_MISMATCH,,,Syntax,\n{row}\n")
    with pytest.raises(DataError, match=named):
        read_sheet(sheet, None)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "is empty"),
        (b"id,status,error,annotator_1\n", "not for annotator_2"),
        (b"id,id,status,error,annotator_1,annotator_2\n", "not for id"),
        ("id,größe\n".encode("latin-1"), "not in UTF-8"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: bytes, named: str) -> None:
    sheet = tmp_path / "labels.csv"
    sheet.write_bytes(content)
    with pytest.raises(DataError, match=named):
        read_sheet(sheet, None)
    with pytest.raises(DataError, match="cannot be read"):
        read_sheet(tmp_path / "none.csv", None)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_what_spreadsheets_write_is_read(tmp_path: Path, delimiter: str) -> None:
    lines = [
        ["Annotator_1", "id", "notes", "error", "status", "annotator_2"],
        ["Syntax", "4", "hm", "no such table: a", "EXECUTION_ERROR", ""],
        ["", "", "", "", "", ""],
        ["", "6", "", "", "TIMEOUT", "Execution", ""],
    ]
    sheet = tmp_path / "labels.csv"
    sheet.write_text("\ufeff" + "".join(delimiter.join(line) + "\r\n" for line in lines), encoding="utf-8")
    rows = read_sheet(sheet, None)
    assert [(row.query_id, row.predicted.value, row.label) for row in rows] == [
        ("4", "Schema Linking", FailureKind.SYNTAX),
        ("6", "Execution", FailureKind.EXECUTION),
    ]


def test_rows_that_the_key_does_not_know_are_refused(tmp_path: Path) -> None:
    sheet = tmp_path / "labels.csv"
    sample = [failure("1", error="no such table: a"), failure("2")]
    write_sheet(sheet, sample, sample, run="r", seed=0)
    key = read_key(key_path(sheet))
    only_two = Key(population=key.population, drawn={"2": FailureKind.RESULT_MISMATCH})
    with pytest.raises(DataError, match=r"row 2 \(id 1\): is no row of the sample"):
        read_sheet(sheet, only_two)

    def clear(row: dict[str, str]) -> None:
        row["error"] = ""

    fill(sheet, {}, clear)
    with pytest.raises(DataError, match=r"row 2 \(id 1\): was classified Schema Linking .* is Unknown now"):
        read_sheet(sheet, key)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"population": []}',
        '{"population": {"Logic": 3}}',
        '{"population": {"Syntax": -1}}',
        '{"population": {"Syntax": 1.5}}',
        '{"population": {"Syntax": true}}',
        '{"population": {}, "drawn": [1]}',
        '{"population": {}, "drawn": {"1": 2}}',
        "\udcff",
    ],
)
def test_a_key_of_another_form_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "key.json"
    path.write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(DataError, match="holds no population"):
        read_key(path)


def test_counts_alone_are_a_key(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    path.write_text('{"population": {"Syntax": 3}}')
    assert read_key(path) == Key(population={FailureKind.SYNTAX: 3}, drawn=None)
    with pytest.raises(DataError, match="cannot be read"):
        read_key(tmp_path / "none.json")
