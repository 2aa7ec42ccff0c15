"""Scoring a predictions file: the verdict on every question, and their summary by group."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from merit_sql.domain.errors import DataError
from merit_sql.eval.datasets import Question, Suite
from merit_sql.eval.judgement import Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One question with the verdicts on its prediction."""

    question: Question
    judgement: Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The scores of some questions.

    `official` and `strict` are means over the questions that have such a verdict, None where none has;
    `unscored` counts those without a strict one.
    """

    name: str
    questions: int
    unscored: int
    official: float | None
    strict: float | None


def select(questions: Sequence[Question], databases: Sequence[str] | None) -> list[Question]:
    """The questions on some databases, or all; raises `DataError` for a database that no question is on."""
    if databases is None:
        return list(questions)
    known = {question.database_id for question in questions}
    unknown = [name for name in databases if name not in known]
    if unknown:
        raise DataError(
            f"no question is on the database {', '.join(map(repr, unknown))}; "
            f"there are: {', '.join(sorted(known))}"
        )
    return [question for question in questions if question.database_id in databases]


def score(
    suite: Suite, questions: Sequence[Question], predictions: Sequence[str], *, jobs: int = 1
) -> list[Scored]:
    """The verdicts on the predictions for `questions`, in their order, `jobs` at a time.

    `predictions` are those for the whole suite, by question id.
    """

    def judge(question: Question) -> Scored:
        judgement = suite.evaluator.judge(question.id, predictions[question.id])
        return Scored(question=question, judgement=judgement)

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        return list(pool.map(judge, questions))


def summarise(name: str, scored: Sequence[Scored]) -> Group:
    """The scores of all of `scored` as one group."""
    official = [one.judgement.official for one in scored if one.judgement.official is not None]
    strict = [one.judgement.strict for one in scored if one.judgement.strict is not None]
    return Group(
        name=name,
        questions=len(scored),
        unscored=len(scored) - len(strict),
        official=fmean(official) if official else None,
        strict=fmean(strict) if strict else None,
    )


def summarise_by(key: Callable[[Question], str], scored: Iterable[Scored]) -> list[Group]:
    """One group for each value of `key`, in the order in which the values first occur."""
    members: dict[str, list[Scored]] = {}
    for one in scored:
        members.setdefault(key(one.question), []).append(one)
    return [summarise(name, group) for name, group in members.items()]


def unscored(scored: Iterable[Scored]) -> dict[str, Counter[str]]:
    """Why questions have no strict verdict, and how many on each database."""
    reasons: dict[str, Counter[str]] = {}
    for one in scored:
        if one.judgement.strict is None and one.judgement.error is not None:
            reasons.setdefault(one.judgement.error, Counter())[one.question.database_id] += 1
    return reasons


def write_verdicts(path: Path, scored: Iterable[Scored]) -> None:
    """Write one JSON object a question, in order, whole or not at all."""
    path = path.resolve()
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("w", encoding="ascii", newline="\n") as file:
            for one in scored:
                file.write(json.dumps(_row(one)) + "\n")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise DataError(f"{path} cannot be written: {error.strerror}") from error


def _row(one: Scored) -> dict[str, object]:
    verdict = one.judgement
    return {
        "id": one.question.id,
        "db_id": one.question.database_id,
        "official": verdict.official,
        "strict": verdict.strict,
        "status": verdict.status,
        "error": verdict.error,
    }
