"""Initial predictions: written once by the model, or read from a file; all methods and orders share them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel

from merit_sql.domain.episode import Case, UsageDict
from merit_sql.domain.errors import DataError
from merit_sql.domain.execution import Database
from merit_sql.eval.datasets import Question
from merit_sql.nodes.generate import write_initial
from merit_sql.prompts.rendering import PromptFamily, TokenBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialPrediction:
    """The SQL that an episode begins with; `usage` is None where it was handed in."""

    question_id: int
    sql: str
    usage: UsageDict | None


def generate_initial(
    model: BaseChatModel,
    family: PromptFamily,
    questions: Sequence[Question],
    databases: Mapping[str, Database],
    *,
    tokens: TokenBudget,
    progress: Callable[[], None],
) -> list[InitialPrediction]:
    """Ask the model once a question, those of one database after another (servers keep its schema warm).

    The order of the result is that of `questions`.
    """
    first_seen = {question.database_id: rank for rank, question in reversed(list(enumerate(questions)))}
    written: dict[int, InitialPrediction] = {}
    for question in sorted(questions, key=lambda one: (first_seen[one.database_id], one.id)):
        candidate = write_initial(
            model, family, case_of(question), databases[question.database_id], tokens=tokens
        )
        written[question.id] = InitialPrediction(
            question_id=question.id, sql=candidate["sql"], usage=candidate["usage"]
        )
        progress()
    return [written[question.id] for question in questions]


def given_initial(questions: Sequence[Question], predictions: Sequence[str]) -> list[InitialPrediction]:
    """The predictions of a file that is aligned to the whole dataset."""
    return [
        InitialPrediction(question_id=question.id, sql=predictions[question.id], usage=None)
        for question in questions
    ]


def case_of(question: Question, *, position: int = 0, initial_sql: str | None = None) -> Case:
    """A dataset's question as the case of an episode; the query id is the question's id in its dataset."""
    return Case(
        query_id=str(question.id),
        database_id=question.database_id,
        question=question.question,
        position=position,
        evidence=question.evidence,
        initial_sql=initial_sql,
    )


def write_initial_file(path: Path, initial: Iterable[InitialPrediction]) -> None:
    """Write ``initial.jsonl``, whole or not at all."""
    lines = [
        json.dumps({"id": one.question_id, "sql": one.sql, "usage": one.usage}, sort_keys=True)
        for one in initial
    ]
    temporary = path.with_suffix(".tmp")
    temporary.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    temporary.replace(path)


def _prediction(row: dict[str, Any]) -> InitialPrediction:
    sql, usage = row["sql"], row["usage"]
    if not isinstance(sql, str):
        raise TypeError(f"the SQL {sql!r} is no text")
    if usage is not None:
        counts = [usage[name] for name in ("prompt_tokens", "output_tokens")]
        if not all(count is None or (type(count) is int and count >= 0) for count in counts):
            raise ValueError(f"the usage {usage!r} holds no counts of tokens")
    return InitialPrediction(question_id=row["id"], sql=sql, usage=usage)


def parse_initial(path: Path) -> list[InitialPrediction]:
    """What an ``initial.jsonl`` holds; raises `DataError` where there is none or it is damaged."""
    try:
        return [_prediction(json.loads(line)) for line in path.read_bytes().splitlines()]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: is no file of initial predictions ({error})") from error


def read_initial_file(path: Path, questions: Sequence[Question]) -> list[InitialPrediction]:
    """Read ``initial.jsonl`` back; raises `DataError` unless it holds these questions in this order."""
    initial = parse_initial(path)
    if [one.question_id for one in initial] != [question.id for question in questions]:
        raise DataError(f"{path}: holds other questions than this run selects; choose another --out")
    return initial
