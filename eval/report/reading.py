"""Run folders as a report takes them in: whole in form, or refused."""

import dataclasses
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from merit_sql.domain.episode import AttemptDict, ReflectionDict
from merit_sql.domain.errors import DataError
from merit_sql.eval.manifest import read_manifest
from merit_sql.eval.runs import LoadedRun, LoadedStream, load_run

_METHODS = TypeAdapter(dict[str, object])
_ORDERS = TypeAdapter(list[int])
_QUESTION = TypeAdapter(tuple[int, str, str, str, str])
_ATTEMPTS = TypeAdapter(Annotated[list[AttemptDict], Field(min_length=1)])
_REFLECTIONS = TypeAdapter(list[ReflectionDict])


def open_run(folder: Path) -> LoadedRun:
    """`load_run`, and proof that all that a report reads is there; raises `DataError` where it is not."""
    identity = read_manifest(folder)["identity"]
    try:
        _METHODS.validate_python(identity.get("methods"), strict=True)
        _ORDERS.validate_python(identity.get("orders"), strict=True)
    except ValidationError as error:
        raise DataError(
            f"{folder / 'manifest.json'}: names no methods and orders; restore it ({_first(error)})"
        ) from error
    try:
        run = load_run(folder)
        for question in run.questions:
            _QUESTION.validate_python(dataclasses.astuple(question), strict=True)
    except OSError as error:
        raise DataError(
            f"{folder}: {error.filename} cannot be read ({error.strerror}); restore it, or run again"
        ) from error
    except ValidationError as error:
        raise DataError(
            f"{folder / 'questions.jsonl'}: is no file of questions ({_first(error)}); "
            "run the same merit bench again"
        ) from error
    for stream in run.streams:
        _check_records(folder / f"{stream.method}-{stream.order}" / "episodes.jsonl", stream)
    return run


def _check_records(path: Path, stream: LoadedStream) -> None:
    for number, record in enumerate(stream.records, start=1):
        try:
            _ATTEMPTS.validate_python(record.attempts)
            _REFLECTIONS.validate_python(record.reflections)
        except ValidationError as error:
            raise DataError(
                f"{path}:{number}: its attempts have not the form of this version ({_first(error)}); "
                "restore the file, or run again in another folder"
            ) from error


def _first(error: ValidationError) -> str:
    found = error.errors()[0]
    return f"{'.'.join(map(str, found['loc'])) or 'it'}: {found['msg']}"
