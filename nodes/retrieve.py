"""The retrieve node: asks the gated memory what is known about a failure like this one."""

from merit_sql.domain.episode import AttemptDict, Case
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.memory import Gate, MemoryQuery, MemoryStore, Retrieved
from merit_sql.domain.status import Status
from merit_sql.nodes.state import EpisodeState, Node, case_of, served, standing_attempt
from merit_sql.stores.ranking import RetrievalPolicy


def recall(
    memory: MemoryStore[RetrievalPolicy],
    policy: RetrievalPolicy,
    case: Case,
    attempts: list[AttemptDict],
) -> Retrieved:
    """The memories that the next generation may see, given the attempts so far (the newest classified)."""
    failed = standing_attempt(attempts)
    failure = failed["failure"]
    query = MemoryQuery(
        question=case.question,
        sql=failed["sql"],
        status=Status(failed["status"]),
        error=failed["error"],
        error_type=FailureKind(failure["type"]) if failure else FailureKind.UNKNOWN,
        step=attempts[-1]["step"] + 1,
    )
    gate = Gate(query_id=case.query_id, database_id=case.database_id, position=case.position)
    return memory.retrieve(query, gate, policy)


def make_retrieve(memory: MemoryStore[RetrievalPolicy] | None, policy: RetrievalPolicy | None) -> Node:
    """The node over a memory; without a memory or a policy nothing is ever retrieved."""

    def retrieve(state: EpisodeState) -> EpisodeState:
        if memory is None or policy is None:
            return {"retrieved": []}
        return {"retrieved": served(recall(memory, policy, case_of(state), state["attempts"]))}

    return retrieve
