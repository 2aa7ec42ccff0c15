"""Builders for what prompts are made of."""

from collections.abc import Callable

import pytest

from merit_sql.domain.episode import Case
from merit_sql.domain.failure import FailureKind, FailureType
from merit_sql.domain.memory import MemoryEntry, RankedMemory, Transition
from merit_sql.domain.schema import Column, ColumnRef, Schema, Table
from merit_sql.domain.sql import delta
from merit_sql.domain.status import Polarity, Status


@pytest.fixture(scope="session")
def case() -> Case:
    return Case(query_id="q7", database_id="concerts", question="How many singers are there?", position=3)


@pytest.fixture(scope="session")
def schema() -> Schema:
    singer = Table(
        name="singer",
        columns=(
            Column(name="Singer_ID", type="INT", primary_key=True),
            Column(name="Full Name", type="VARCHAR(20)"),
        ),
    )
    concert = Table(
        name="concert",
        columns=(
            Column(
                name="singer",
                type="INT",
                primary_key=True,
                references=(ColumnRef("singer", "Singer_ID"),),
            ),
            Column(name="order", type=""),
        ),
    )
    return Schema(database_id="concerts", tables=(singer, concert))


@pytest.fixture(scope="session")
def mismatch() -> FailureType:
    return FailureType(kind=FailureKind.RESULT_MISMATCH, subtype="Unknown", decided_by="DENOTATION_MISMATCH")


@pytest.fixture(scope="session")
def memory() -> Callable[..., RankedMemory]:
    """A retrieved entry: the step from one SQL to another, confirmed or failed."""

    def build(
        polarity: Polarity,
        before: str,
        after: str,
        *,
        error: str | None = None,
        entry_id: str | None = None,
    ) -> RankedMemory:
        positive = polarity is Polarity.POSITIVE
        status = Status.EXECUTION_ERROR if error else Status.DENOTATION_MISMATCH
        content = Transition(
            question="How many songs?",
            schema="table song:",
            database_id="songs",
            error_type=FailureKind.SCHEMA_LINKING if error else FailureKind.RESULT_MISMATCH,
            failed_sql=before if positive else after,
            status=status,
            db_error=error,
            sql_delta=delta(before, after),
            outcome=Status.CORRECT if positive else status,
            successful_direction=after if positive else "",
        )
        entry = MemoryEntry(
            id=entry_id or content.identity,
            polarity=polarity,
            content=content,
            confirmations=1,
            successes=int(positive),
            failures=int(not positive),
            observations=(),
        )
        return RankedMemory(entry=entry, score=0.5, dense=0.5, lexical=0.5, same_type=True)

    return build
