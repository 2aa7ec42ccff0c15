"""The benchmark's oracle: the one place of a run where a reference answer is known."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from merit_sql.domain.episode import Case, Verdict
from merit_sql.domain.errors import DataError
from merit_sql.domain.status import Opinion, Regime, Status
from merit_sql.eval.datasets import Evaluator


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
class BenchmarkOracle:
    """Judges as the regime says; the strict verdict and the official score stand beside the opinion.

    ``denotation_confirmed``: the strict verdict is the opinion. ``dbms_only``: what does not run is
    refuted, what runs is EXECUTED and nobody's opinion (method.md §1, "Regimes"). `scope` is whatever a
    verdict depends on besides question and SQL (dataset, database and limits), as a hash.
    """

    evaluator: Evaluator
    record: VerdictRecord
    scope: str
    regime: Regime = Regime.DENOTATION_CONFIRMED
    name: str = "denotation"

    def judge(self, case: Case, sql: str) -> Verdict:
        """Raises `DataError` for a question that cannot be scored: it must not have been selected."""
        canonical = json.dumps([self.scope, case.query_id, sql], separators=(",", ":"))
        key = hashlib.sha256(canonical.encode("ascii")).hexdigest()
        kept = self.record.get_verdict(key)
        row: dict[str, Any] = kept if isinstance(kept, dict) else self._put(key, case, sql)
        verdict = Verdict(
            opinion=Opinion.CONFIRMED if row["strict"] else Opinion.REFUTED,
            status=Status(row["status"]),
            error=row["error"],
            confirmed_by=self.name if row["strict"] else None,
            official=row["official"],
            strict=row["strict"],
        )
        return verdict if self.regime is Regime.DENOTATION_CONFIRMED else _by_the_dbms(verdict)

    def _put(self, key: str, case: Case, sql: str) -> dict[str, Any]:
        judgement = self.evaluator.judge_reply(int(case.query_id), sql)
        if judgement.strict is None or judgement.status is None:
            raise DataError(f"question {case.query_id} of {case.database_id} cannot be scored")
        row = {
            "strict": judgement.strict,
            "status": judgement.status.value,
            "error": judgement.error,
            "official": judgement.official,
        }
        self.record.put_verdict(key, row)
        return row


def _by_the_dbms(verdict: Verdict) -> Verdict:
    """What a DBMS alone could have said."""
    if verdict.status not in {Status.CORRECT, Status.DENOTATION_MISMATCH}:
        return verdict
    return replace(verdict, opinion=Opinion.NONE, status=Status.EXECUTED, confirmed_by=None)
