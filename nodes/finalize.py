"""The finalize node: what an episode leaves behind, handed to the one committer."""

from collections.abc import Callable
from dataclasses import dataclass

from merit_sql.domain.episode import AttemptDict, Case, EpisodeRecord
from merit_sql.domain.execution import Database
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.memory import Committer, Observation, Provenance, Transition
from merit_sql.domain.sql import delta
from merit_sql.domain.status import Opinion, Polarity, Regime, Status
from merit_sql.nodes.state import EpisodeState, Node, case_of
from merit_sql.prompts.rendering import render_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What every record and observation of one graph says of where it came from."""

    run: str
    method: str
    regime: Regime


def observe(
    case: Case,
    attempts: list[AttemptDict],
    *,
    schema: str,
    origin: Origin,
    kept: frozenset[Polarity],
) -> Observation | None:
    """The episode's one observation, or None (method.md, "Memory").

    A confirmed repair gives a positive, its last transition, in the context of the attempt before. An
    episode that stayed refuted gives a negative, its last transition, in the context of its last attempt.
    A first answer that was confirmed, an episode without a revision, and one that ended unjudged give
    nothing; so does a polarity that is not in `kept`.
    """
    if len(attempts) < 2:
        return None
    before, last = attempts[-2], attempts[-1]
    opinion = Opinion(last["opinion"])
    if opinion is Opinion.NONE:
        return None
    polarity = Polarity.POSITIVE if opinion is Opinion.CONFIRMED else Polarity.NEGATIVE
    if polarity not in kept:
        return None
    failed = before if polarity is Polarity.POSITIVE else last
    failure = failed["failure"]
    if failure is None:
        raise ValueError(f"attempt {failed['step']} of query {case.query_id} failed and was not classified")
    content = Transition(
        question=case.question,
        schema=schema,
        database_id=case.database_id,
        error_type=FailureKind(failure["type"]),
        failed_sql=failed["sql"],
        status=Status(failed["status"]),
        db_error=failed["error"],
        sql_delta=delta(before["sql"], last["sql"]),
        outcome=Status(last["status"]),
        successful_direction=last["sql"] if polarity is Polarity.POSITIVE else "",
    )
    provenance = Provenance(
        run=origin.run,
        method=origin.method,
        regime=origin.regime,
        query_id=case.query_id,
        database_id=case.database_id,
        position=case.position,
        step=last["step"],
        retrieved_ids=tuple(last["memory_ids"]),
        polarity=polarity,
    )
    return Observation.of(provenance, content)


def record_of(case: Case, state: EpisodeState, origin: Origin) -> EpisodeRecord:
    """The finished episode's record."""
    last = state["attempts"][-1]
    return EpisodeRecord(
        run=origin.run,
        method=origin.method,
        regime=origin.regime,
        query_id=case.query_id,
        database_id=case.database_id,
        position=case.position,
        status=Status(last["status"]),
        confirmed_by=last["confirmed_by"],
        sql=last["sql"],
        attempts=state["attempts"],
        reflections=state["reflections"],
        memory_ids=last["memory_ids"],
    )


def make_finalize(
    databases: Callable[[str], Database],
    *,
    origin: Origin,
    kept: frozenset[Polarity],
    committer: Committer | None,
) -> Node:
    """The node; without a committer it writes nothing anywhere.

    It clears what a caller may leave out next time, so that a thread's next question does not inherit it.
    """

    def finalize(state: EpisodeState) -> EpisodeState:
        case = case_of(state)
        record = record_of(case, state, origin)
        if committer is not None:
            schema = render_schema(databases(case.database_id).schema)
            committer.commit(
                record, observe(case, state["attempts"], schema=schema, origin=origin, kept=kept)
            )
        return {
            "sql": record.sql,
            "status": record.status.value,
            "confirmed_by": record.confirmed_by,
            "memory_ids": record.memory_ids,
            "evidence": None,
            "initial_sql": None,
            "query_id": None,
            "position": None,
            "finished": True,
        }

    return finalize
