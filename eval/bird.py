"""BIRD's evaluation: execution accuracy, soft F1 and the two efficiency scores, and our strict verdict."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from merit_sql.databases.catalogue import Catalogue
from merit_sql.databases.sqlite import SqliteDatabase
from merit_sql.domain.execution import (
    EMPTY_REPLY,
    Execution,
    Limits,
    Row,
    TextDecoding,
    timeout_message,
)
from merit_sql.domain.status import Status
from merit_sql.eval.comparison import same_set
from merit_sql.eval.efficiency import REPETITIONS, reward_ves, time_ratio, ves
from merit_sql.eval.judgement import GOLD_FAILS, NO_DATABASE, Judgement
from merit_sql.eval.official import from_statement, has_statement
from merit_sql.eval.references import ReferenceCache
from merit_sql.eval.soft_f1 import soft_f1

Metric: TypeAlias = Literal["ex", "soft-f1", "ves", "r-ves"]
"""What the official verdict measures."""

SECONDS = 30.0
"""The official time limit of prediction and reference together."""

_REWARDS: dict[str, tuple[Callable[[float], float], bool]] = {
    "ves": (ves, False),
    "r-ves": (reward_ves, True),
}
"""By metric: what a correct query earns for its time ratio, and whether fetching the rows is timed too."""


class BirdEvaluator:
    """BIRD's official scores and the strict verdict, which compares sets of rows whatever the metric.

    A prediction may take what its reference left of the time limit. Where the reference itself fails the
    official score is 0 and the strict verdict None.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        golds: Mapping[int, tuple[str, str]],
        *,
        metric: Metric = "ex",
        timeout: float = SECONDS,
    ) -> None:
        """`golds` holds (database id, reference SQL) by question id; `timeout` is in seconds."""
        self._catalogue = catalogue
        self._golds = golds
        self._metric: Metric = metric
        self._timeout = timeout
        self._references = ReferenceCache()

    def settings(self) -> dict[str, object]:
        """What the verdicts depend on beside the data, as JSON-able values."""
        return {"kind": "bird", "metric": self._metric, "timeout": self._timeout}

    def scorable(self, question_id: int) -> bool:
        """Whether the question's database is there and its reference query runs."""
        database = self._catalogue.get(self._golds[question_id][0])
        return database is not None and self._gold(question_id, database).ok

    def judge(self, question_id: int, sql: str) -> Judgement:
        """The verdicts on one prediction; BIRD's own files hold SQL of any shape, so it is read as it is."""
        database = self._catalogue.get(self._golds[question_id][0])
        if database is None:
            return Judgement(official=None, strict=None, status=None, error=NO_DATABASE)
        gold = self._gold(question_id, database)
        if not gold.ok:
            return Judgement(official=0, strict=None, status=None, error=GOLD_FAILS)
        if not has_statement(sql):
            official = 0 if self._metric in _REWARDS else self._value(gold.rows, ())
            return Judgement(official=official, strict=0, status=Status.EXECUTION_ERROR, error=EMPTY_REPLY)
        limits = Limits(seconds=self._timeout - gold.seconds)
        found = database.execute(from_statement(sql), limits=limits, decoding=TextDecoding.STRICT)
        if not found.ok:
            late = found.status is Status.TIMEOUT
            error = timeout_message(self._timeout) if late else found.error
            return Judgement(official=0, strict=0, status=found.status, error=error)
        correct = same_set(gold.rows, found.rows)
        if self._metric in _REWARDS:
            official = self._reward(question_id, sql, database) if correct else 0
        else:
            official = self._value(gold.rows, found.rows)
        status = Status.CORRECT if correct else Status.DENOTATION_MISMATCH
        return Judgement(official=official, strict=int(correct), status=status, error=None)

    def judge_reply(self, question_id: int, sql: str) -> Judgement:
        """The verdicts on a model's SQL: those of `judge`, whatever line breaks it holds."""
        return self.judge(question_id, sql)

    def _value(self, gold: Sequence[Row], predicted: Sequence[Row]) -> float:
        return int(same_set(gold, predicted)) if self._metric == "ex" else soft_f1(gold, predicted)

    def _reward(self, question_id: int, sql: str, database: SqliteDatabase) -> float:
        """What a correct query earns for its time; 0 where one of the two queries fails while it is timed."""
        earned, fetch = _REWARDS[self._metric]
        seconds: list[list[float]] = []
        for text in (self._golds[question_id][1], from_statement(sql)):
            limits = Limits(seconds=self._timeout * REPETITIONS)
            timed = database.time(text, repetitions=REPETITIONS, limits=limits, fetch=fetch)
            if isinstance(timed, Execution):
                return 0
            seconds.append(timed)
        return earned(time_ratio(*seconds))

    def _gold(self, question_id: int, database: SqliteDatabase) -> Execution:
        sql = self._golds[question_id][1]
        limits = Limits(seconds=self._timeout)
        (found,) = self._references.get(
            question_id, lambda: (database.execute(sql, limits=limits, decoding=TextDecoding.STRICT),)
        )
        return found
