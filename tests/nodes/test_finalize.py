"""What an episode writes to memory: at most its last transition, under the right polarity and context."""

from collections.abc import Callable

from merit_sql.domain.episode import AttemptDict, Case
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.memory import Observation
from merit_sql.domain.status import Opinion, Polarity, Regime, Status
from merit_sql.nodes.finalize import Origin, observe

Build = Callable[..., AttemptDict]
CASE = Case(query_id="q", database_id="shop", question="How many?", position=4)
ORIGIN = Origin(run="r", method="merit", regime=Regime.DENOTATION_CONFIRMED)
RIGHT = {
    "status": "CORRECT",
    "opinion": Opinion.CONFIRMED.value,
    "failure": None,
    "confirmed_by": "denotation",
}
MISSING = {
    "status": "EXECUTION_ERROR",
    "error": "no such column: nam",
    "failure": {"type": "Schema Linking", "subtype": "Missing Column", "decided_by": "no such column: nam"},
}


def seen(attempts: list[AttemptDict], kept: frozenset[Polarity] = frozenset(Polarity)) -> Observation | None:
    return observe(CASE, attempts, schema="S", origin=ORIGIN, kept=kept)


def test_a_right_first_answer_leaves_nothing(attempt: Build) -> None:
    assert seen([attempt(0, "SELECT 1", **RIGHT)]) is None


def test_an_episode_without_a_revision_leaves_nothing(attempt: Build) -> None:
    assert seen([attempt(0, "SELECT 1")]) is None


def test_an_unjudged_end_leaves_nothing(attempt: Build) -> None:
    ran = {"status": "EXECUTED", "opinion": Opinion.NONE.value, "failure": None}
    assert seen([attempt(0, "SELECT a", **MISSING), attempt(1, "SELECT b", **ran)]) is None


def test_a_repair_leaves_its_last_transition_in_the_context_of_the_attempt_before(attempt: Build) -> None:
    observation = seen(
        [
            attempt(0, "SELECT x"),
            attempt(1, "SELECT nam", **MISSING),
            attempt(2, "SELECT name", memory_ids=["m1", "m2"], **RIGHT),
        ]
    )
    assert observation is not None and observation.content is not None
    content, provenance = observation.content, observation.provenance
    assert provenance.polarity is Polarity.POSITIVE
    assert content.sql_delta == "SELECT nam => SELECT name"
    assert content.failed_sql == "SELECT nam"
    assert content.failure_context == (
        "attempted_sql=SELECT nam; status=EXECUTION_ERROR; db_error=no such column: nam"
    )
    assert content.error_type is FailureKind.SCHEMA_LINKING
    assert content.outcome is Status.CORRECT
    assert (provenance.step, provenance.position, provenance.retrieved_ids) == (2, 4, ("m1", "m2"))


def test_an_unresolved_episode_leaves_its_last_transition_in_the_context_of_the_last(attempt: Build) -> None:
    observation = seen([attempt(0, "A"), attempt(1, "B"), attempt(2, "C", **MISSING)])
    assert observation is not None and observation.content is not None
    content = observation.content
    assert observation.provenance.polarity is Polarity.NEGATIVE
    assert content.sql_delta == "B => C"
    assert content.failed_sql == "C"
    assert content.error_type is FailureKind.SCHEMA_LINKING
    assert content.outcome is Status.EXECUTION_ERROR
    assert content.db_error == "no such column: nam"
    assert content.successful_direction == ""


def test_a_polarity_that_a_method_does_not_keep_is_not_written(attempt: Build) -> None:
    only = frozenset({Polarity.POSITIVE})
    assert seen([attempt(0, "A"), attempt(1, "B")], only) is None
    assert seen([attempt(0, "A"), attempt(1, "B", **RIGHT)], only) is not None
