"""The oracle for those who have no reference: does it run?"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from merit_sql.domain.episode import Case, Verdict
from merit_sql.domain.errors import DataError
from merit_sql.domain.execution import Database, Limits
from merit_sql.domain.status import Opinion


@dataclass(frozen=True, slots=True)
class ExecutionOracle:
    """Refutes what does not run, and leaves what runs unjudged: it can confirm nothing."""

    databases: Mapping[str, Database]
    limits: Limits = field(default_factory=Limits)
    name: str = "execution"

    def judge(self, case: Case, sql: str) -> Verdict:
        """EXECUTED without an opinion, or the refutation with the DBMS's message.

        Raises `DataError` for a case about a database that is not there.
        """
        if case.database_id not in self.databases:
            known = ", ".join(sorted(self.databases)[:20])
            raise DataError(f"there is no database {case.database_id!r}; known: {known}")
        execution = self.databases[case.database_id].execute(sql, limits=self.limits)
        return Verdict(
            opinion=Opinion.NONE if execution.ok else Opinion.REFUTED,
            status=execution.status,
            error=execution.error,
        )
