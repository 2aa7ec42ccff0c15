"""The sheet that annotators fill in: a CSV safe to open in a spreadsheet, and the key kept from them."""

import csv
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from merit_sql.domain.errors import DataError
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.status import Status
from merit_sql.eval.validation import LABELLED_TWICE, Failure, Labelled, population_of
from merit_sql.nodes.failures import classify_failure

COLUMNS = ("id", "database", "question", "sql", "status", "error", "both", "annotator_1", "annotator_2")
READ = ("id", "status", "error", "annotator_1", "annotator_2")
"""Columns that scoring needs; the others are the annotators'."""

FORMAT = 1
LONGEST_CELL = 30_000
"""Characters of a cell: spreadsheets cut at 32,767. The classifier reads both ends of a message only."""

_FORMULA = re.compile(r"'*(?:\s*[=+\-@＝＋－＠]|[\t\r\n])")
_NEUTRALISED = re.compile(f"'{_FORMULA.pattern}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What belongs to a sheet and stays hidden from annotators.

    `population` counts the run's initial failures by predicted type; `drawn` holds the predicted type of
    each row of the sheet, by id, and is None in a file that gives the counts alone.
    """

    population: Mapping[FailureKind, int]
    drawn: Mapping[str, FailureKind] | None


def key_path(sheet: Path) -> Path:
    """Where the key of a sheet lies: ``labels.csv`` has ``labels.key.json``."""
    return sheet.parent / f"{sheet.stem}.key.json"


def neutralise(text: str) -> str:
    """`text` as a cell that no spreadsheet takes for a formula; `restore` undoes it."""
    return f"'{text}" if _FORMULA.match(text) else text


def restore(cell: str) -> str:
    """The inverse of `neutralise`."""
    return cell[1:] if _NEUTRALISED.match(cell) else cell


def write_sheet(
    path: Path, sample: Sequence[Failure], failures: Sequence[Failure], *, run: str, seed: int
) -> None:
    """Write the sheet of `sample` and, beside it, the key with the counts of all `failures`.

    The first `LABELLED_TWICE` rows say yes under ``both``: they are for both annotators. Raises
    `DataError` where either file exists (labels are never overwritten) or cannot be written.
    """
    beside = key_path(path)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL)
    writer.writerow(COLUMNS)
    for number, one in enumerate(sample):
        texts = (one.query_id, one.database_id, one.question, one.sql, one.status.value, one.error)
        both = "yes" if number < LABELLED_TWICE else ""
        writer.writerow([*map(_cell, texts), both, "", ""])
    key = {
        "format": FORMAT,
        "run": run,
        "seed": seed,
        "population": {kind.value: count for kind, count in population_of(failures).items()},
        "drawn": {one.query_id: one.predicted.value for one in sample},
    }
    for file in (path, beside):
        if file.exists():
            raise DataError(f"{file} exists already; name another --output, or move it away")
    try:
        _write_new(beside, (json.dumps(key, indent=1) + "\n").encode("utf-8"))
        try:
            # With a byte order mark, without which Excel takes UTF-8 for something else.
            _write_new(path, buffer.getvalue().encode("utf-8-sig"))
        except OSError:
            beside.unlink()
            raise
    except OSError as error:
        raise DataError(f"{error.filename or path} cannot be written ({error.strerror})") from error


def read_sheet(path: Path, key: Key | None) -> list[Labelled]:
    """The rows of a sheet that came back, in its own order.

    Columns may stand in any order, with others beside them, between commas, semicolons or tabs. Labels
    count whatever their case. Raises `DataError` naming the row (numbered as a spreadsheet does, the
    header being 1) for an unknown label or status, an id that is missing, twice there or not in `key`, and
    a row whose status and error no longer give the type that `key` has.
    """
    rows = _rows(path)
    labelled: list[Labelled] = []
    seen: dict[str, int] = {}
    for number, row in rows:
        query_id = restore(row["id"].strip())
        at = f"{path}, row {number} (id {query_id or 'missing'})"
        if not query_id or query_id in seen:
            found = f"the same id as row {seen[query_id]}" if query_id else "no id"
            raise DataError(f"{at}: has {found}; each row needs its own, as the sample wrote it")
        seen[query_id] = number
        labelled.append(
            Labelled(
                query_id=query_id,
                predicted=_predicted(at, query_id, row, key),
                first=_label(at, "annotator_1", row),
                second=_label(at, "annotator_2", row),
            )
        )
    return labelled


def read_key(path: Path) -> Key:
    """The key beside a sheet, or a file ``{"population": {type: count}}``; raises `DataError` otherwise."""
    try:
        document = json.loads(path.read_bytes())
        if not isinstance(document, dict) or not isinstance(document["population"], dict):
            raise TypeError("it must be an object with an object population")
        population = {_kind(name): count for name, count in document["population"].items()}
        wrong = [count for count in population.values() if type(count) is not int or count < 0]
        if wrong:
            raise TypeError(f"the count {wrong[0]!r} is no whole number")
        drawn = document.get("drawn")
        types = None if drawn is None else {str(query): _kind(name) for query, name in drawn.items()}
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: holds no population of failure types ({error})") from error
    return Key(population=population, drawn=types)


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not in UTF-8 ({error}); save it as “CSV UTF-8”") from error
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    try:
        header, *lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    except ValueError as error:
        raise DataError(f"{path}: is empty; it must begin with the columns {', '.join(COLUMNS)}") from error
    except csv.Error as error:
        raise DataError(f"{path}: is no CSV ({error}); save it as “CSV UTF-8”") from error
    names = [name.strip().casefold() for name in header]
    missing = [name for name in READ if names.count(name) != 1]
    if missing:
        raise DataError(
            f"{path}: its first row must name each of the columns {', '.join(READ)} once; it does not for "
            f"{', '.join(missing)}"
        )
    rows = []
    for number, line in enumerate(lines, start=2):
        if not any(cell.strip() for cell in line):
            continue
        if len(line) < len(names):
            raise DataError(f"{path}, row {number}: has {len(line)} cells, the header {len(names)}")
        rows.append((number, dict(zip(names, line, strict=False))))
    return rows


def _predicted(at: str, query_id: str, row: Mapping[str, str], key: Key | None) -> FailureKind:
    try:
        status = Status(restore(row["status"]).strip())
        predicted = classify_failure(status, restore(row["error"])).kind
    except ValueError as error:
        allowed = ", ".join(status.value for status in Status if status is not Status.CORRECT)
        raise DataError(f"{at}: {row['status']!r} is no status of a failure; allowed: {allowed}") from error
    if key is None or key.drawn is None:
        return predicted
    if query_id not in key.drawn:
        raise DataError(f"{at}: is no row of the sample that the key belongs to")
    if key.drawn[query_id] is not predicted:
        raise DataError(
            f"{at}: was classified {key.drawn[query_id]} when it was drawn and is {predicted} now: its "
            "status or error was edited, or the classifier has changed; restore it, or draw a new sample"
        )
    return predicted


def _label(at: str, column: str, row: Mapping[str, str]) -> FailureKind | None:
    text = restore(row[column]).strip()
    if not text:
        return None
    try:
        return _kind(text)
    except ValueError as error:
        raise DataError(f"{at}, {column}: {error}") from error


def _kind(text: str) -> FailureKind:
    for kind in FailureKind:
        if kind.value.casefold() == text.casefold():
            return kind
    allowed = ", ".join(kind.value for kind in FailureKind)
    raise ValueError(f"{text!r} is no failure type; allowed: {allowed}")


def _cell(text: str) -> str:
    """`text` without what UTF-8 has no bytes for, cut in its middle, and safe from being run."""
    text = text.encode("utf-8", errors="backslashreplace").decode("utf-8")
    if len(text) > LONGEST_CELL:
        half = LONGEST_CELL // 2
        text = f"{text[:half]} […] {text[-half:]}"
    return neutralise(text)


def _write_new(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            path.unlink()
            raise
