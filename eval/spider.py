"""Spider's test-suite evaluation: execution on every database file of a folder, and our strict verdict."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from merit_sql.databases.catalogue import Catalogue
from merit_sql.domain.execution import (
    EMPTY_REPLY,
    Database,
    Limits,
    TextDecoding,
    timeout_message,
)
from merit_sql.domain.status import Status
from merit_sql.eval.comparison import same_denotation
from merit_sql.eval.judgement import GOLD_FAILS, NO_DATABASE, Judgement, Outcome
from merit_sql.eval.official import (
    from_statement,
    has_statement,
    official_line,
    repair_operators,
    replace_current_year,
    strip_distinct,
)
from merit_sql.eval.references import Denotations, ReferenceCache

Distinct: TypeAlias = Literal["keep", "strip"]
"""Whether DISTINCT counts in the official verdict, or is dropped from both sides."""

SECONDS = 60.0
"""The official time limit of one query (which there never fires)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reference:
    """A reference query as it is executed; row order counts where its text says ``order by`` anywhere."""

    sql: str
    ordered: bool

    @classmethod
    def of(cls, gold: str, distinct: Distinct) -> "_Reference":
        text = repair_operators(gold)
        if distinct == "strip":
            text = strip_distinct(text) or ""
        return cls(sql=replace_current_year(text), ordered="order by" in text.lower())


class SpiderEvaluator:
    """Spider's official verdict in either DISTINCT mode, and the strict one beside it.

    The strict verdict executes a prediction exactly as written and always minds DISTINCT; the reference is
    executed as the official scorer does. Both mind every database file of the question's folder and stop
    at the first that does not agree.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        golds: Mapping[int, tuple[str, str]],
        *,
        distinct: Distinct = "keep",
        timeout: float = SECONDS,
    ) -> None:
        """`golds` holds (database id, reference SQL) by question id; `timeout` is seconds a query."""
        self._catalogue = catalogue
        self._golds = golds
        self._distinct = distinct
        self._limits = Limits(seconds=timeout)
        self._references = ReferenceCache()

    def settings(self) -> dict[str, object]:
        """What the verdicts depend on beside the data, as JSON-able values."""
        return {"kind": "spider", "distinct": self._distinct, "timeout": self._limits.seconds}

    def scorable(self, question_id: int) -> bool:
        """Whether the question's database is there and its reference query runs on all its files."""
        database_id, gold = self._golds[question_id]
        if database_id not in self._catalogue:
            return False
        return self._denotations(question_id, _Reference.of(gold, "keep")) is not None

    def judge(self, question_id: int, sql: str) -> Judgement:
        """The verdicts on the text of one line of a predictions file."""
        return self._judge(question_id, sql, line=sql)

    def judge_reply(self, question_id: int, sql: str) -> Judgement:
        """The verdicts on a model's SQL; `official` is None where it cannot be written on one line."""
        return self._judge(question_id, sql, line=official_line(sql))

    def _judge(self, question_id: int, sql: str, *, line: str | None) -> Judgement:
        database_id, gold = self._golds[question_id]
        if database_id not in self._catalogue:
            return Judgement(official=None, strict=None, status=None, error=NO_DATABASE)
        kept = _Reference.of(gold, "keep")
        strict = self._strict(question_id, sql, kept)
        official = None if line is None else self._official(question_id, line, sql, kept, strict)
        if strict is None:
            return Judgement(official=official, strict=None, status=None, error=GOLD_FAILS)
        return Judgement(
            official=official, strict=int(strict.correct), status=strict.status, error=strict.error
        )

    def _strict(self, question_id: int, sql: str, reference: _Reference) -> Outcome | None:
        denotations = self._denotations(question_id, reference)
        if denotations is None:
            return None
        if not has_statement(sql):
            return Outcome(status=Status.EXECUTION_ERROR, error=EMPTY_REPLY)
        return self._outcome(question_id, sql, reference, denotations)

    def _official(
        self, question_id: int, line: str, sql: str, kept: _Reference, strict: Outcome | None
    ) -> int | None:
        """The official verdict on `line`; that of `strict` where both execute the same two texts."""
        reference = _Reference.of(self._golds[question_id][1], self._distinct)
        denotations = self._denotations(question_id, reference)
        if denotations is None:
            return None
        predicted: str | None = repair_operators(line.replace("value", "1"))
        if self._distinct == "strip":
            predicted = strip_distinct(predicted or "")
        if predicted is None:
            return 0
        predicted = replace_current_year(predicted)
        if not has_statement(predicted):
            return int(not any(one.rows for one in denotations))
        if strict is not None and (predicted, reference) == (sql, kept):
            return int(strict.correct)
        return int(self._outcome(question_id, predicted, reference, denotations).correct)

    def _outcome(
        self, question_id: int, sql: str, reference: _Reference, denotations: Denotations
    ) -> Outcome:
        for database, gold in zip(self._files(question_id), denotations, strict=True):
            execution = database.execute(
                from_statement(sql), limits=self._limits, decoding=TextDecoding.IGNORE
            )
            if execution.status is Status.TIMEOUT:
                return Outcome(status=Status.TIMEOUT, error=timeout_message(self._limits.seconds))
            if not execution.ok:
                return Outcome(status=execution.status, error=execution.error)
            if not same_denotation(gold.rows, execution.rows, ordered=reference.ordered):
                return Outcome(status=Status.DENOTATION_MISMATCH)
        return Outcome(status=Status.CORRECT)

    def _denotations(self, question_id: int, reference: _Reference) -> Denotations | None:
        """What the reference gives on each database file; None where it fails on one."""
        key = (question_id, reference.sql)
        found = self._references.get(key, lambda: self._execute_gold(question_id, reference.sql))
        return found if all(one.ok for one in found) else None

    def _execute_gold(self, question_id: int, sql: str) -> Denotations:
        return tuple(
            database.execute(sql, limits=self._limits, decoding=TextDecoding.IGNORE)
            for database in self._files(question_id)
        )

    def _files(self, question_id: int) -> tuple[Database, ...]:
        return self._catalogue.variants(self._golds[question_id][0])
