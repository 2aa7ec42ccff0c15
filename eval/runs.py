"""A run folder read back: what a report or a comparison needs of it, without the suite's own data."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merit_sql.domain.episode import EpisodeRecord, UsageDict
from merit_sql.domain.errors import DataError
from merit_sql.domain.memory import Observation
from merit_sql.eval.datasets import Question
from merit_sql.eval.initial import InitialPrediction, parse_initial
from merit_sql.eval.ledger import read_ledger
from merit_sql.eval.manifest import read_manifest
from merit_sql.eval.metrics import Metrics, measure
from merit_sql.eval.timings import Timings, read_timings

QUESTIONS_NAME = "questions.jsonl"
SCHEMAS_NAME = "schemas.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedStream:
    """One stream as far as it has come: records in stream order, what each left, and the seconds it took."""

    method: str
    order: int
    records: tuple[EpisodeRecord, ...]
    observations: tuple[Observation | None, ...]
    initial_usage: tuple[UsageDict | None, ...]
    timings: Timings

    @property
    def metrics(self) -> Metrics:
        """The figures of the episodes that are there."""
        return measure(self.records, self.initial_usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRun:
    """One run folder.

    `identity` is the manifest's. `questions` are in dataset order, without answers; `schemas` holds each
    database's schema as prompts print it. `streams` are in the manifest's order, those without a finished
    episode left out.
    """

    folder: Path
    run: str
    identity: Mapping[str, Any]
    questions: tuple[Question, ...]
    schemas: Mapping[str, str]
    streams: tuple[LoadedStream, ...]

    def question(self, query_id: str) -> Question:
        """The question that a record is about; raises `DataError` for one that the run does not hold."""
        found = {str(question.id): question for question in self.questions}.get(query_id)
        if found is None:
            raise DataError(f"{self.folder}: holds no question {query_id}")
        return found


def load_run(folder: Path) -> LoadedRun:
    """Read a run, finished or not; raises `DataError` where `folder` holds none or a file is damaged."""
    document = read_manifest(folder)
    identity = document["identity"]
    questions = read_questions(folder)
    initial = {one.question_id: one for one in parse_initial(folder / "initial.jsonl")}
    streams = []
    for method in identity["methods"]:
        for order in identity["orders"]:
            stream = _stream(folder / f"{method}-{order}", method, order, initial)
            if stream.records:
                streams.append(stream)
    return LoadedRun(
        folder=folder,
        run=document["run"],
        identity=identity,
        questions=questions,
        schemas=_schemas(folder),
        streams=tuple(streams),
    )


def _stream(folder: Path, method: str, order: int, initial: Mapping[int, InitialPrediction]) -> LoadedStream:
    lines = read_ledger(folder / "episodes.jsonl")
    records = tuple(record for record, _ in lines)
    try:
        usage = tuple(initial[int(record.query_id)].usage for record in records)
    except (KeyError, ValueError) as error:
        raise DataError(
            f"{folder}: holds an episode of a question that the run does not have ({error})"
        ) from error
    return LoadedStream(
        method=method,
        order=order,
        records=records,
        observations=tuple(observation for _, observation in lines),
        initial_usage=usage,
        timings=read_timings(folder / "timings.jsonl"),
    )


def write_questions(folder: Path, questions: Sequence[Question], schemas: Mapping[str, str]) -> None:
    """Keep what a reader of the run must know of its questions: no answers; schemas as prompts print them."""
    lines = [
        json.dumps(
            {
                "id": one.id,
                "database_id": one.database_id,
                "question": one.question,
                "evidence": one.evidence,
                "difficulty": one.difficulty,
            },
            sort_keys=True,
        )
        for one in questions
    ]
    _write(folder / QUESTIONS_NAME, "".join(f"{line}\n" for line in lines))
    _write(folder / SCHEMAS_NAME, json.dumps(dict(schemas), indent=1, sort_keys=True) + "\n")


def read_questions(folder: Path) -> tuple[Question, ...]:
    """The inverse of `write_questions`; raises `DataError` where the file is missing or of another form."""
    path = folder / QUESTIONS_NAME
    try:
        rows = [json.loads(line) for line in path.read_bytes().splitlines()]
        return tuple(Question(**row) for row in rows)
    except OSError as error:
        raise DataError(
            f"{path} cannot be read ({error.strerror}); run the same merit bench again"
        ) from error
    except (ValueError, TypeError) as error:
        raise DataError(
            f"{path}: is no file of questions ({error}); run the same merit bench again"
        ) from error


def _schemas(folder: Path) -> Mapping[str, str]:
    path = folder / SCHEMAS_NAME
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}); run the same merit bench again") from error
    if not isinstance(document, dict):
        raise DataError(f"{path}: is no file of schemas; run the same merit bench again")
    return {str(name): str(text) for name, text in document.items()}


def _write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
