"""The exchange format, version 3: a memory as two JSONL files, one entry a line, out and in."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from merit_sql.domain.errors import DataError
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.memory import (
    Applicability,
    MemoryEntry,
    Observation,
    Transition,
    failure_context,
)
from merit_sql.domain.status import Polarity, Status
from merit_sql.stores.episodic import EpisodicMemory
from merit_sql.stores.folding import Fold, entry_of, fold, winning_polarity
from merit_sql.stores.gate import CommitKey
from merit_sql.stores.records import (
    check_observation,
    number_of,
    optional_text_of,
    provenance_from_dict,
    provenance_to_dict,
    text_of,
)

FORMAT_VERSION = 3

FILES = {Polarity.POSITIVE: "memory_positive.jsonl", Polarity.NEGATIVE: "memory_negative.jsonl"}

FIELDS = (
    "format_version",
    "id",
    "polarity",
    "error_type",
    "failure_context",
    "sql_delta",
    "normalized_delta",
    "outcome",
    "db_error",
    "successful_direction",
    "question",
    "schema",
    "database_id",
    "applicability",
    "confirmations",
    "successes",
    "failures",
    "observations",
)

OBSERVATION_FIELDS = (
    "run",
    "method",
    "regime",
    "query_id",
    "database_id",
    "position",
    "step",
    "retrieved_ids",
    "polarity",
)


def export_memory(memory: EpisodicMemory, folder: Path) -> dict[Polarity, int]:
    """Write everything that was committed, merged into entries; how many of either polarity.

    Entries stand in the order in which they were first observed. Each file is replaced as a whole, with
    mode 0600. Raises `DataError` at an entry whose polarity has no text, which the format cannot hold.
    """
    observations = memory.observations
    rows: dict[str, list[int]] = {}
    for row, observation in enumerate(observations):
        rows.setdefault(observation.entry_id, []).append(row)
    lines: dict[Polarity, list[str]] = {polarity: [] for polarity in FILES}
    for identity, its in rows.items():
        folded = fold(its, observations)
        if folded is None:
            raise DataError(
                f"entry {identity} cannot be exported: imports gave it a polarity of which they held no text"
            )
        entry = entry_of(_representative_last(folded, observations), observations)
        lines[entry.polarity].append(json.dumps(entry_to_dict(entry)) + "\n")
    folder.mkdir(parents=True, exist_ok=True)
    for polarity, name in FILES.items():
        _replace(folder / name, "".join(lines[polarity]).encode("ascii"))
    return {polarity: len(lines[polarity]) for polarity in FILES}


def import_memory(memory: EpisodicMemory, folder: Path) -> int:
    """Commit the observations that the files in `folder` hold; how many were new.

    An entry's text goes to its newest observation of its polarity, the others keep only where they came
    from. Either file may be missing. Raises `DataError` naming file and line at anything that the format
    does not allow, at an id that is not the hash of its entry, and at an observation that another entry
    has claimed already; the memory is unchanged then.
    """
    paths = {polarity: folder / name for polarity, name in FILES.items()}
    if not any(path.exists() for path in paths.values()):
        raise DataError(f"{folder}: holds neither {' nor '.join(FILES.values())}: nothing to import")
    claimed = {one.provenance.commit_key: one.entry_id for one in memory.observations}
    read: list[Observation] = []
    for polarity, path in paths.items():
        for number, line in _lines(path):
            try:
                observations = entry_from_line(line, polarity)
                _claim(claimed, observations)
            except (ValueError, KeyError, TypeError, RecursionError, DataError) as error:
                what = f"the field {error} is missing" if isinstance(error, KeyError) else str(error)
                raise DataError(f"{path}:{number}: {what}; nothing was imported") from error
            read.extend(observations)
    return memory.commit_all(read)


def entry_to_dict(entry: MemoryEntry) -> dict[str, Any]:
    """One line of the exchange format, its fields in their order.

    The entry's text must be that of its last observation of its polarity.
    """
    content = entry.content
    return {
        "format_version": FORMAT_VERSION,
        "id": entry.id,
        "polarity": entry.polarity.value,
        "error_type": content.error_type.value,
        "failure_context": content.failure_context,
        "sql_delta": content.sql_delta,
        "normalized_delta": content.normalized_delta,
        "outcome": content.outcome.value,
        "db_error": content.db_error,
        "successful_direction": content.successful_direction,
        "question": content.question,
        "schema": content.schema,
        "database_id": content.database_id,
        "applicability": content.applicability.value,
        "confirmations": entry.confirmations,
        "successes": entry.successes,
        "failures": entry.failures,
        "observations": [provenance_to_dict(one) for one in entry.observations],
    }


def entry_from_line(line: bytes, polarity: Polarity) -> list[Observation]:
    """The observations of one line of the file of a polarity; the inverse of `entry_to_dict`.

    Raises KeyError, TypeError, ValueError or `DataError` at a line that is not consistent in itself.
    """
    data = json.loads(line.decode("utf-8"))
    _require_fields(data, FIELDS)
    if data["format_version"] != FORMAT_VERSION or isinstance(data["format_version"], bool):
        raise ValueError(f"format_version is {data['format_version']!r}, expected {FORMAT_VERSION}")
    if data["polarity"] != polarity.value:
        raise ValueError(f"polarity is {data['polarity']!r} in the file of {polarity.value} entries")
    for one in data["observations"]:
        _require_fields(one, OBSERVATION_FIELDS)
    provenances = [provenance_from_dict(one) for one in data["observations"]]
    _require_counts(data, [one.polarity for one in provenances], polarity)
    content = _content(data)
    if content.normalized_delta != data["normalized_delta"]:
        raise ValueError(f"normalized_delta is not that of sql_delta, {content.normalized_delta!r:.200}")
    entry_id = text_of(data, "id")
    representative = max(i for i, one in enumerate(provenances) if one.polarity is polarity)
    observations = [
        Observation(entry_id=entry_id, provenance=one, content=content if i == representative else None)
        for i, one in enumerate(provenances)
    ]
    for observation in observations:
        check_observation(observation)
    return observations


def _representative_last(folded: Fold, observations: Sequence[Observation]) -> Fold:
    """The fold with its representative last of its polarity, which is where a reader expects the text.

    The sequence of polarities, and with it the fold, stays what it is.
    """
    same = [row for row in folded.rows if observations[row].provenance.polarity is folded.polarity]
    same.remove(folded.representative)
    places = iter([*same, folded.representative])
    rows = [
        next(places) if observations[row].provenance.polarity is folded.polarity else row
        for row in folded.rows
    ]
    return replace(folded, rows=rows)


def _content(data: Mapping[str, Any]) -> Transition:
    db_error = optional_text_of(data, "db_error")
    failed_sql, status = _read_context(text_of(data, "failure_context"), db_error)
    return Transition(
        question=text_of(data, "question"),
        schema=text_of(data, "schema"),
        database_id=text_of(data, "database_id"),
        error_type=FailureKind(text_of(data, "error_type")),
        failed_sql=failed_sql,
        status=status,
        db_error=db_error,
        sql_delta=text_of(data, "sql_delta"),
        outcome=Status(text_of(data, "outcome")),
        successful_direction=text_of(data, "successful_direction"),
        applicability=Applicability(text_of(data, "applicability")),
    )


def _read_context(context: str, db_error: str | None) -> tuple[str, Status]:
    """Failed SQL and status out of a failure context, read from its ends: the SQL may hold anything."""
    for status in Status:
        head, tail = failure_context("\0", status, db_error).split("\0", 1)
        if context.startswith(head) and context.endswith(tail) and len(context) >= len(head) + len(tail):
            return context[len(head) : len(context) - len(tail)], status
    raise ValueError(
        f"failure_context does not read {failure_context('…', Status.EXECUTION_ERROR, db_error)!r:.300} "
        "with one of the statuses"
    )


def _require_fields(data: object, fields: Sequence[str]) -> None:
    if not isinstance(data, dict):
        raise ValueError(f"expected an object, not {data!r:.80}")
    if missing := [name for name in fields if name not in data]:
        raise ValueError(f"fields are missing: {', '.join(missing)}")
    if unknown := sorted(set(data) - set(fields)):
        raise ValueError(f"fields are unknown: {', '.join(unknown)}")


def _require_counts(data: Mapping[str, Any], polarities: Sequence[Polarity], polarity: Polarity) -> None:
    successes = sum(one is Polarity.POSITIVE for one in polarities)
    counted = (len(polarities), successes, len(polarities) - successes)
    stated = tuple(number_of(data, name) for name in ("confirmations", "successes", "failures"))
    if stated != counted:
        raise ValueError(f"confirmations, successes, failures are {stated}, its observations give {counted}")
    if not polarities or winning_polarity(polarities) is not polarity:
        raise ValueError(f"its observations do not make a {polarity.value} entry")


def _claim(claimed: dict[CommitKey, str], observations: Sequence[Observation]) -> None:
    for one in observations:
        key = one.provenance.commit_key
        if claimed.setdefault(key, one.entry_id) != one.entry_id:
            raise ValueError(f"observation {key} belongs to entry {claimed[key]} already")


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    data = path.read_bytes() if path.exists() else b""
    if data:
        yield from enumerate(data.removesuffix(b"\n").split(b"\n"), start=1)


def _replace(path: Path, data: bytes) -> None:
    """Write a file so that a reader finds the old one or the new one, never a part."""
    partial = path.with_name(path.name + ".partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
