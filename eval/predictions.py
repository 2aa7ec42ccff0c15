"""Predictions files: one SQL a line, or BIRD's prediction JSON."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from merit_sql.domain.errors import DataError

_BIRD_MARK = "\t----- bird -----\t"
_NAMED_AT_MOST = 10


def read_predictions(path: Path, databases: Sequence[str]) -> list[str]:
    """The predictions for a whole dataset, in its order.

    `databases` names the database of every question. A line holds SQL, which a tab and more may follow;
    only the file's last newline is no prediction, blank lines are. The JSON is BIRD's: an object from each
    question's index to its SQL, the mark and the database; or an array of such texts. Raises `DataError`
    when the file is missing, is no UTF-8, or does not hold one prediction for each question.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no UTF-8 text (byte {error.start}): write it again as UTF-8") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    document = _as_json(path, text)
    if document is None:
        predictions = [line.strip().split("\t")[0].strip() for line in _lines(text)]
    elif isinstance(document, dict):
        predictions = _joined_by_id(path, document, databases)
    else:
        predictions = [_sql_of(path, index, entry, databases) for index, entry in enumerate(document)]
    if len(predictions) != len(databases):
        raise DataError(
            f"{path} holds {len(predictions)} predictions, but the dataset has {len(databases)} questions: "
            "give one line a question of the whole dev.json, blank where there is no prediction"
        )
    return predictions


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _as_json(path: Path, text: str) -> dict[str, object] | list[object] | None:
    """The JSON object or array that the file holds; None for a file of lines."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        document = json.loads(text, object_pairs_hook=_without_repeats)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except (ValueError, RecursionError) as error:
        if path.suffix == ".json":
            raise DataError(f"{path} is no JSON: {error}") from error
        return None
    return document if isinstance(document, dict | list) else None


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) != len(pairs):
        twice = [key for key, times in Counter(key for key, _ in pairs).items() if times > 1]
        raise DataError(f"two predictions for {_named(twice)}: keep one of each")
    return document


def _joined_by_id(path: Path, document: dict[str, object], databases: Sequence[str]) -> list[str]:
    wanted = {str(index): index for index in range(len(databases))}
    missing = [key for key in wanted if key not in document]
    unknown = [key for key in document if key not in wanted]
    if missing or unknown:
        raise DataError(
            f"{path} holds {len(document)} predictions, but the dataset has {len(databases)} questions; "
            f"missing: {_named(missing)}; not in the dataset: {_named(unknown)}. Keys are indices in dev.json"
        )
    return [_sql_of(path, index, document[key], databases) for key, index in wanted.items()]


def _sql_of(path: Path, index: int, entry: object, databases: Sequence[str]) -> str:
    """The SQL of one entry; a number or null stands for a model that gave none, as BIRD's scorer has it."""
    if isinstance(entry, dict | list):
        raise DataError(f"{path}: prediction {index} is no text; each must be SQL, the mark and the database")
    if not isinstance(entry, str):
        return ""
    sql, mark, database = entry.partition(_BIRD_MARK)
    if mark and index < len(databases) and database.strip() != databases[index]:
        raise DataError(
            f"{path}: prediction {index} is for the database {database.strip()!r}, but question {index} is "
            f"on {databases[index]!r}: the file belongs to another dataset or order"
        )
    return sql


def _named(keys: Sequence[str]) -> str:
    if not keys:
        return "none"
    more = len(keys) - _NAMED_AT_MOST
    return ", ".join(keys[:_NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")
