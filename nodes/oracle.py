"""The oracle node: has an attempt judged, and appends it to the episode's attempts."""

from collections.abc import Callable
from dataclasses import replace

from merit_sql.domain.episode import AttemptDict, Case, Oracle, Verdict
from merit_sql.domain.execution import EMPTY_REPLY
from merit_sql.domain.status import Opinion, Status
from merit_sql.nodes.state import Candidate, EpisodeState, Node, case_of, opening


def judge(oracle: Oracle, case: Case, sql: str) -> Verdict:
    """The oracle's verdict, save that an empty attempt is refuted whatever an oracle thinks of it."""
    verdict = oracle.judge(case, sql)
    if sql.strip():
        return verdict
    return replace(
        verdict,
        opinion=Opinion.REFUTED,
        status=Status.EXECUTION_ERROR,
        error=EMPTY_REPLY,
        confirmed_by=None,
        strict=None if verdict.strict is None else 0,
    )


def given(sql: str) -> Candidate:
    """The candidate of SQL that was handed in rather than generated."""
    return {
        "step": 0,
        "sql": sql,
        "repeat_of": None,
        "draw": 0,
        "memory_ids": [],
        "memories": [],
        "usage": None,
        "finish_reason": None,
        "dropped": [],
    }


def judged(candidate: Candidate, verdict: Verdict) -> AttemptDict:
    """A candidate with its verdict: the attempt that goes on record."""
    return {
        **candidate,
        "status": verdict.status.value,
        "error": verdict.error,
        "failure": None,
        "opinion": verdict.opinion.value,
        "confirmed_by": verdict.confirmed_by,
        "official": verdict.official,
        "strict": verdict.strict,
    }


def repeated(candidate: Candidate, earlier: AttemptDict) -> AttemptDict:
    """A refused repeat: it takes over what is known of the attempt that it equals, and is not executed."""
    return {
        **candidate,
        "status": earlier["status"],
        "error": earlier["error"],
        "failure": earlier["failure"],
        "opinion": earlier["opinion"],
        "confirmed_by": earlier["confirmed_by"],
        "official": earlier["official"],
        "strict": earlier["strict"],
    }


def make_oracle(oracle: Oracle, *, next_position: Callable[[], int], budget: int) -> Node:
    """The node over an oracle; it opens the episode where the initial SQL was handed in."""

    def judge_candidate(state: EpisodeState) -> EpisodeState:
        candidate = state.get("candidate")
        opened: EpisodeState = {}
        if candidate is None or not _goes_on(state):
            fresh: EpisodeState = {**state, "finished": True}
            opened = opening(fresh, next_position=next_position(), budget=budget)
            state = {**state, **opened}
            candidate = given(state["initial_sql"] or "")
        attempts = state["attempts"]
        if candidate["repeat_of"] is not None:
            attempt = repeated(candidate, attempts[candidate["repeat_of"]])
        else:
            attempt = judged(candidate, judge(oracle, case_of(state), candidate["sql"]))
        return {**opened, "attempts": [*attempts, attempt], "candidate": None}

    return judge_candidate


def _goes_on(state: EpisodeState) -> bool:
    return not opening(state, next_position=0, budget=0)
