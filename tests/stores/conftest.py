"""What the tests of the memory share: observations, queries and gates that say only what matters."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from merit_sql.domain.failure import FailureKind
from merit_sql.domain.memory import Gate, MemoryQuery, Observation, Provenance, Transition
from merit_sql.domain.status import Polarity, Regime, Status

POSITIVE = Transition(
    question="How many singers?",
    schema="singer(id, name)",
    database_id="concert",
    error_type=FailureKind.SCHEMA_LINKING,
    failed_sql="SELECT nam FROM singer",
    status=Status.EXECUTION_ERROR,
    db_error="no such column: nam",
    sql_delta="SELECT nam FROM singer => SELECT name FROM singer",
    outcome=Status.CORRECT,
    successful_direction="SELECT name FROM singer",
)
NEGATIVE = Transition(
    question="How many singers?",
    schema="singer(id, name)",
    database_id="concert",
    error_type=FailureKind.RESULT_MISMATCH,
    failed_sql="SELECT 2",
    status=Status.DENOTATION_MISMATCH,
    db_error=None,
    sql_delta="SELECT 1 => SELECT 2",
    outcome=Status.DENOTATION_MISMATCH,
)


@pytest.fixture(scope="session")
def observe() -> Callable[..., Observation]:
    """Build an observation at a position, of query ``q<position>``, a repair unless told otherwise."""

    def build(
        position: int,
        *,
        polarity: Polarity = Polarity.POSITIVE,
        query_id: str | None = None,
        run: str = "run",
        retrieved_ids: tuple[str, ...] = (),
        **changes: Any,
    ) -> Observation:
        base = POSITIVE if polarity is Polarity.POSITIVE else NEGATIVE
        content = replace(base, **changes)
        provenance = Provenance(
            run=run,
            method="merit",
            regime=Regime.DENOTATION_CONFIRMED,
            query_id=f"q{position}" if query_id is None else query_id,
            database_id=content.database_id,
            position=position,
            step=1,
            retrieved_ids=retrieved_ids,
            polarity=polarity,
        )
        return Observation.of(provenance, content)

    return build


@pytest.fixture(scope="session")
def ask() -> MemoryQuery:
    """A query about a missing column."""
    return MemoryQuery(
        question="How many bands?",
        sql="SELECT nam FROM band",
        status=Status.EXECUTION_ERROR,
        error="no such column: nam",
        error_type=FailureKind.SCHEMA_LINKING,
    )


@pytest.fixture(scope="session")
def gate_at() -> Callable[..., Gate]:
    """The gate of a query that no observation has, on a database that none has, at a position."""

    def build(position: int, *, query_id: str = "asking", database_id: str = "elsewhere") -> Gate:
        return Gate(query_id=query_id, database_id=database_id, position=position)

    return build
