"""The benchmark's oracle: the one place of a run where a reference answer is known."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from merit_sql.domain.episode import Case, Verdict
from merit_sql.domain.errors import DataError
from merit_sql.domain.status import Opinion, Status
from merit_sql.eval.datasets import Evaluator, Judgement


@runtime_checkable
class VerdictSource(Protocol):
    """Recorded verdicts by key."""

    def get_verdict(self, key: str) -> object | None:
        """What was put under the key, or None."""
        ...


class VerdictRecord(VerdictSource, Protocol):
    """Verdicts by key, kept beside the replies so that a repeated run does not depend on a clock."""

    def put_verdict(self, key: str, value: object) -> None:
        """Keep JSON-able data under the key for good."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """A run's own record of verdicts, and earlier ones that are asked first; what they know is copied."""

    own: VerdictRecord
    earlier: Sequence[object] = ()

    def get_verdict(self, key: str) -> object | None:
        """See `VerdictSource.get_verdict`."""
        found = self.own.get_verdict(key)
        if found is not None:
            return found
        for record in self.earlier:
            found = record.get_verdict(key) if isinstance(record, VerdictSource) else None
            if found is not None:
                self.own.put_verdict(key, found)
                return found
        return None

    def put_verdict(self, key: str, value: object) -> None:
        """See `VerdictRecord.put_verdict`."""
        self.own.put_verdict(key, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class DenotationOracle:
    """Compares denotations: the strict judgement is the opinion, the official score stands beside it.

    `scope` is whatever a verdict depends on besides question and SQL (dataset, database and limits), as a
    hash.
    """

    evaluator: Evaluator
    record: VerdictRecord
    scope: str
    name: str = "denotation"

    def judge(self, case: Case, sql: str) -> Verdict:
        """Raises `DataError` for a question that cannot be scored: it must not have been selected."""
        canonical = json.dumps([self.scope, case.query_id, sql], separators=(",", ":"))
        key = hashlib.sha256(canonical.encode("ascii")).hexdigest()
        kept = self.record.get_verdict(key)
        if isinstance(kept, dict):
            return _verdict(
                kept["strict"], Status(kept["status"]), kept["error"], kept["official"], self.name
            )
        judgement = self._judgement(case, sql)
        if judgement.strict is None or judgement.status is None:
            raise DataError(f"question {case.query_id} of {case.database_id} cannot be scored")
        row = {
            "strict": judgement.strict,
            "status": judgement.status.value,
            "error": judgement.error,
            "official": judgement.official,
        }
        self.record.put_verdict(key, row)
        return _verdict(judgement.strict, judgement.status, judgement.error, judgement.official, self.name)

    def _judgement(self, case: Case, sql: str) -> Judgement:
        return self.evaluator.judge_reply(int(case.query_id), sql)


def _verdict(strict: int, status: Status, error: str | None, official: float | None, name: str) -> Verdict:
    return Verdict(
        opinion=Opinion.CONFIRMED if strict else Opinion.REFUTED,
        status=status,
        error=error,
        confirmed_by=name if strict else None,
        official=official,
    )
