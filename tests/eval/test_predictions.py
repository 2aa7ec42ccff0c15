"""Predictions files of every form, and what is turned away."""

import json
from pathlib import Path

import pytest

from merit_sql.domain.errors import DataError
from merit_sql.eval.predictions import read_predictions

DATABASES = ["pets", "pets", "wine"]


def read(tmp_path: Path, content: bytes | str, name: str = "predictions.sql") -> list[str]:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_predictions(path, DATABASES)


@pytest.mark.parametrize(
    "content",
    [
        "SELECT 1\nSELECT 2\nSELECT 3\n",
        "SELECT 1\nSELECT 2\nSELECT 3",
        "SELECT 1\r\nSELECT 2\r\nSELECT 3\r\n",
        "SELECT 1\tpets\nSELECT 2\tpets\nSELECT 3\twine\textra\n",
        " SELECT 1 \n\tSELECT 2\nSELECT 3 \twine",
        "\ufeffSELECT 1\nSELECT 2\nSELECT 3\n",
    ],
)
def test_lines_hold_sql_and_what_follows_a_tab_is_not_part_of_it(tmp_path: Path, content: str) -> None:
    assert read(tmp_path, content) == ["SELECT 1", "SELECT 2", "SELECT 3"]


@pytest.mark.parametrize("content", ["SELECT 1\n\n\n", "SELECT 1\n \n\t\n"])
def test_blank_lines_are_predictions(tmp_path: Path, content: str) -> None:
    assert read(tmp_path, content) == ["SELECT 1", "", ""]


@pytest.mark.parametrize(("content", "found"), [("", 0), ("a\nb\n", 2), ("a\nb\nc\n\n", 4), ("[\nb\n", 2)])
def test_another_number_of_lines_is_an_error_with_both_numbers(
    tmp_path: Path, content: str, found: int
) -> None:
    with pytest.raises(DataError, match=f"holds {found} predictions.* has 3 questions"):
        read(tmp_path, content)


def test_lines_that_merely_begin_like_json_are_lines(tmp_path: Path) -> None:
    assert read(tmp_path, "[1]\nSELECT 2\n{") == ["[1]", "SELECT 2", "{"]
    assert read(tmp_path, "[" * 50_000 + "\nSELECT 2\n\n")[1:] == ["SELECT 2", ""]


def bird(sql: str, database: str) -> str:
    return f"{sql}\t----- bird -----\t{database}"


def test_birds_json_is_joined_by_id(tmp_path: Path) -> None:
    document = {
        "2": bird("SELECT 3", "wine"),
        "0": bird("SELECT\t1\n-- one", "pets"),
        "1": "SELECT 2",
    }
    assert read(tmp_path, json.dumps(document)) == ["SELECT\t1\n-- one", "SELECT 2", "SELECT 3"]


def test_a_json_array_is_in_order_and_what_is_no_text_is_no_prediction(tmp_path: Path) -> None:
    document = [bird("SELECT 1", "pets"), 0, None]
    assert read(tmp_path, json.dumps(document), "predictions.json") == ["SELECT 1", "", ""]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param('{"0": "a", "2": "c"}', "holds 2 .* has 3 .*missing: 1;", id="missing"),
        pytest.param('{"0": "a", "1": "b", "2": "c", "x": "d"}', "not in the dataset: x", id="unknown"),
        pytest.param('{"0": "a", "1": "b", "2": "c", "1": "d"}', "two predictions for 1", id="twice"),
        pytest.param('["a", "b"]', "holds 2 predictions.* has 3", id="short array"),
        pytest.param('["a", "b", {"SQL": "c"}]', "prediction 2 is no text", id="array of objects"),
        pytest.param('{"0": "a", "1": ', "is no JSON", id="torn"),
        pytest.param(
            json.dumps({"0": "a", "1": bird("b", "wine"), "2": "c"}),
            "prediction 1 is for the database 'wine', but question 1 is on 'pets'",
            id="another database",
        ),
    ],
)
def test_json_of_another_form_is_an_error_that_says_where(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, content, "predictions.json")


def test_a_file_that_is_no_utf8_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is no UTF-8 text \(byte 8\)"):
        read(tmp_path, b"SELECT '\xe9'\n\n\n")


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.sql cannot be read: No such file"):
        read_predictions(tmp_path / "absent.sql", DATABASES)
