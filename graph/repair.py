"""The repair state machine: its nodes, its edges, its budget."""

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from merit_sql.domain.episode import Oracle
from merit_sql.domain.errors import DataError
from merit_sql.domain.execution import Database
from merit_sql.domain.memory import Committer, MemoryStore
from merit_sql.domain.status import Opinion, Regime
from merit_sql.graph.method import Method
from merit_sql.nodes.classify import classify
from merit_sql.nodes.finalize import Origin, make_finalize
from merit_sql.nodes.generate import DEFAULT_TOKENS, make_generate
from merit_sql.nodes.oracle import make_oracle
from merit_sql.nodes.reflect import make_reflect
from merit_sql.nodes.retrieve import make_retrieve
from merit_sql.nodes.state import DEFAULT_BUDGET, EpisodeInput, EpisodeOutput, EpisodeState
from merit_sql.prompts.rendering import TokenBudget
from merit_sql.stores.ranking import RetrievalPolicy

RepairGraph: TypeAlias = CompiledStateGraph[EpisodeState, None, EpisodeInput, EpisodeOutput]


def recursion_limit(budget: int) -> int:
    """Supersteps that an episode of `budget` revisions can need, with room to spare: 8 + 6·K.

    A round has at most five: classify, reflect, retrieve, generate, oracle.
    """
    return 8 + 6 * budget


def route_start(state: EpisodeState) -> Literal["oracle", "generate"]:
    """An initial SQL, the empty one included, is judged; without one the model writes it."""
    return "generate" if state.get("initial_sql") is None else "oracle"


def route_verdict(state: EpisodeState) -> Literal["classify", "finalize"]:
    """A refuted attempt is classified; one that is confirmed, or that nobody judged, ends the episode."""
    return "classify" if state["attempts"][-1]["opinion"] == Opinion.REFUTED else "finalize"


def route_budget(state: EpisodeState) -> Literal["retrieve", "finalize"]:
    """Revise while k < K."""
    return "retrieve" if state["attempts"][-1]["step"] < state["budget"] else "finalize"


def build_repair_graph(
    model: BaseChatModel,
    memory: MemoryStore[RetrievalPolicy] | None,
    oracle: Oracle,
    databases: Mapping[str, Database],
    method: Method,
    committer: Committer | None = None,
    *,
    run: str = "",
    regime: Regime = Regime.DENOTATION_CONFIRMED,
    budget: int = DEFAULT_BUDGET,
    tokens: TokenBudget = DEFAULT_TOKENS,
) -> RepairGraph:
    """Bind the collaborators to the state machine of one method and compile it, without a checkpointer.

    `budget` is K, the number of revisions an episode may spend; `tokens` bounds prompts and replies.
    Without a `committer` the graph reads memory and writes nothing. `run` and `regime` go into the records
    and the provenance of memories.
    Raises `DataError` at a question about a database that `databases` does not hold.
    """
    if budget < 0:
        raise DataError(f"a budget of {budget} revisions makes no sense: give 0 or more")

    def next_position() -> int:
        return 0 if memory is None else memory.next_position()

    database = _lookup(databases)
    effective = budget if method.revises else 0
    graph: StateGraph[EpisodeState, None, EpisodeInput, EpisodeOutput] = StateGraph(
        EpisodeState, input_schema=EpisodeInput, output_schema=EpisodeOutput
    )
    graph.add_node("oracle", make_oracle(oracle, next_position=next_position, budget=effective))
    graph.add_node("classify", classify)
    graph.add_node("retrieve", make_retrieve(memory, method.policy))
    graph.add_node(
        "generate",
        make_generate(
            model,
            database,
            method.prompts,
            on_repeat=method.on_repeat,
            reflects=method.reflects,
            next_position=next_position,
            budget=effective,
            tokens=tokens,
        ),
    )
    origin = Origin(run=run, method=method.name, regime=regime)
    graph.add_node("finalize", make_finalize(database, origin=origin, kept=method.kept, committer=committer))
    graph.add_conditional_edges(START, route_start)
    graph.add_conditional_edges("oracle", route_verdict)
    if method.reflects:
        graph.add_node("reflect", make_reflect(model, database, method.prompts, tokens=tokens))
        graph.add_edge("classify", "reflect")
        graph.add_conditional_edges("reflect", route_budget)
    else:
        graph.add_conditional_edges("classify", route_budget)
    graph.add_edge("retrieve", "generate")
    graph.add_edge("generate", "oracle")
    graph.add_edge("finalize", END)
    compiled = graph.compile(name="merit-sql")
    return compiled.with_config(recursion_limit=recursion_limit(effective))


def _lookup(databases: Mapping[str, Database]) -> Callable[[str], Database]:
    def database(database_id: str) -> Database:
        if database_id not in databases:
            known = ", ".join(sorted(databases)[:20])
            raise DataError(f"there is no database {database_id!r}; known: {known}")
        return databases[database_id]

    return database
