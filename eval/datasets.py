"""Benchmarks as suites: questions without their answers, databases, and the evaluator that knows them."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merit_sql.databases.catalogue import Catalogue
from merit_sql.domain.errors import DataError
from merit_sql.eval import bird, spider
from merit_sql.eval.bird import BirdEvaluator, Metric
from merit_sql.eval.hardness import hardness
from merit_sql.eval.judgement import Evaluator, Judgement
from merit_sql.eval.spider import Distinct, SpiderEvaluator

__all__ = ["Evaluator", "Judgement", "Question", "Suite", "load_suite"]

_UNKNOWN = "unknown"

Golds = Mapping[int, tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of a benchmark, without its answer.

    `id` is its index in ``dev.json``; `difficulty` is BIRD's word, or Spider's hardness, and ``unknown``
    where the file says neither.
    """

    id: int
    database_id: str
    question: str
    evidence: str = ""
    difficulty: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A benchmark ready to run: all its questions in order, its databases, and its evaluator.

    `digest` is the sha256 (hex) of the file that holds questions and answers.
    """

    name: str
    digest: str
    questions: tuple[Question, ...]
    catalogue: Catalogue
    evaluator: Evaluator


def load_suite(
    name: str,
    data: Path,
    *,
    workers: int = 1,
    distinct: Distinct = "keep",
    metric: Metric = "ex",
    timeout: float | None = None,
) -> Suite:
    """Spider or BIRD from the folder that holds ``spider/`` and ``bird/``.

    `workers` queries run at a time. `distinct` is Spider's alone, `metric` BIRD's. `timeout` is in seconds;
    None stands for the official limit: 60 a query for Spider, 30 for prediction and reference together for
    BIRD. Raises `DataError` for another name and for data that is missing or of another form.
    """
    if name not in _ITEMS:
        raise DataError(f"no suite is called {name!r}: choose one of {', '.join(_ITEMS)}")
    path = data / name / "dev.json"
    content = _content(path)
    questions, golds = _parse(path, name, content)
    if name == "spider":
        catalogue = Catalogue.from_spider(data, workers=workers)
        evaluator: Evaluator = SpiderEvaluator(
            catalogue, golds, distinct=distinct, timeout=timeout or spider.SECONDS
        )
    else:
        catalogue = Catalogue.from_bird(data, workers=workers)
        evaluator = BirdEvaluator(catalogue, golds, metric=metric, timeout=timeout or bird.SECONDS)
    return Suite(
        name=name,
        digest=hashlib.sha256(content).hexdigest(),
        questions=questions,
        catalogue=catalogue,
        evaluator=evaluator,
    )


def _spider_item(index: int, item: Mapping[str, Any]) -> tuple[Question, tuple[str, str]]:
    parsed = item.get("sql")
    question = Question(
        id=index,
        database_id=_text(item, "db_id"),
        question=_text(item, "question"),
        difficulty=_UNKNOWN if parsed is None else hardness(parsed),
    )
    return question, (question.database_id, _text(item, "query"))


def _bird_item(index: int, item: Mapping[str, Any]) -> tuple[Question, tuple[str, str]]:
    question = Question(
        id=index,
        database_id=_text(item, "db_id"),
        question=_text(item, "question"),
        evidence=_text(item, "evidence", ""),
        difficulty=_text(item, "difficulty", _UNKNOWN),
    )
    return question, (question.database_id, _text(item, "SQL"))


def _text(item: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """The text under `key`; null, nothing and the empty text mean `default` where there is one."""
    value = item[key] if default is None else item.get(key) or default
    if not isinstance(value, str):
        raise TypeError(f"{key} is {type(value).__name__}, not text")
    return value


_ITEMS: dict[str, Callable[[int, Mapping[str, Any]], tuple[Question, tuple[str, str]]]] = {
    "spider": _spider_item,
    "bird": _bird_item,
}


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read ({error.strerror}): "
            f"the data folder must be the one that holds {path.parent.name}/"
        ) from error


def _parse(path: Path, name: str, content: bytes) -> tuple[tuple[Question, ...], Golds]:
    try:
        items = json.loads(content)
    except ValueError as error:
        raise DataError(f"{path} is no JSON text: {error}") from error
    if not isinstance(items, list):
        raise DataError(f"{path} must hold an array of questions")
    pairs = [_item(path, name, index, item) for index, item in enumerate(items)]
    return tuple(question for question, _ in pairs), {question.id: gold for question, gold in pairs}


def _item(path: Path, name: str, index: int, item: Mapping[str, Any]) -> tuple[Question, tuple[str, str]]:
    try:
        return _ITEMS[name](index, item)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"{path}: question {index} has not the form of {name}'s ({error!r})") from error
