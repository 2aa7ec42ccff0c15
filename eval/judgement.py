"""What an evaluator says of one prediction, and the seam that every benchmark's evaluator stands behind."""

from dataclasses import dataclass
from typing import Protocol

from merit_sql.domain.status import Status

NO_DATABASE = "the question's database is missing"
"""Why a question without a database is unscored."""

GOLD_FAILS = "the reference query does not run"
"""Why a question is unscored whose reference query fails; what the database said is never repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdicts on one prediction.

    `official` is the benchmark's own value of the metric asked for: 0 or 1, or a fraction; None where the
    official scorer has no answer. `strict` is 0 or 1 for the SQL as written, None for a question that
    cannot be scored; `status` and `error` belong to it. `error` is the prediction's own error or one of our
    fixed texts, never anything that a reference query caused.
    """

    official: float | None
    strict: int | None
    status: Status | None
    error: str | None


class Evaluator(Protocol):
    """Scores predictions for the questions of one suite; the reference queries live in here alone."""

    def settings(self) -> dict[str, object]:
        """What the verdicts depend on beside the data, as JSON-able values."""
        ...

    def judge(self, question_id: int, sql: str) -> Judgement:
        """The verdicts on a prediction as a file holds it: the official scorer reads it as it is."""
        ...

    def judge_reply(self, question_id: int, sql: str) -> Judgement:
        """The verdicts on a model's SQL of any shape.

        The official one is that of the line it becomes (`official.official_line`); None where it becomes
        none.
        """
        ...

    def scorable(self, question_id: int) -> bool:
        """Whether the question's database is there and its reference query runs."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One prediction against one reference: how it ended, and its own error."""

    status: Status
    error: str | None = None

    @property
    def correct(self) -> bool:
        """Whether the denotations agree."""
        return self.status is Status.CORRECT
