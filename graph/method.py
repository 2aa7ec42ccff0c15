"""Methods: one frozen value per repair strategy, and the registry of those that have a name."""

from dataclasses import dataclass, field

from merit_sql.domain.status import Polarity
from merit_sql.nodes.generate import OnRepeat
from merit_sql.prompts.rendering import FAMILIES, PromptFamily
from merit_sql.stores.gate import Scope
from merit_sql.stores.ranking import (
    POSITIVES_ONLY,
    TYPE_BONUS,
    UNTYPED_POOL,
    RetrievalPolicy,
    TypeFilter,
)

BOTH = frozenset(Polarity)
POSITIVE = frozenset({Polarity.POSITIVE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """What distinguishes one repair strategy from another.

    `policy` is None for a method without memory; `kept` are the polarities it writes; `revises` is False
    where the initial prediction is judged and nothing more.
    """

    name: str
    summary: str
    policy: RetrievalPolicy | None = None
    kept: frozenset[Polarity] = frozenset()
    revises: bool = True
    reflects: bool = False
    on_repeat: OnRepeat = OnRepeat.KEEP
    prompts: PromptFamily = field(default_factory=lambda: FAMILIES["cached"])

    @property
    def remembers(self) -> bool:
        """Whether it has a memory at all."""
        return self.policy is not None


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(name="zero_shot", summary="the initial prediction, judged", revises=False),
        Method(name="iterative", summary="local history and feedback; no memory"),
        Method(
            name="reflexion",
            summary="iterative, and one verbal reflection after every failed attempt; no memory",
            reflects=True,
        ),
        Method(
            name="dynamic_rag",
            summary="positive memories alone, one untyped pool, hybrid retrieval, top 4",
            policy=RetrievalPolicy(pools=UNTYPED_POOL, type_filter=TypeFilter.NEVER),
            kept=POSITIVE,
        ),
        Method(
            name="merit",
            summary="typed positive and negative memories, hybrid retrieval",
            policy=RetrievalPolicy(),
            kept=BOTH,
        ),
        Method(
            name="merit_type_reliability",
            summary="merit, but pools are typed only where the type is reliable; else an equal type adds 0.1",
            policy=RetrievalPolicy(type_filter=TypeFilter.RELIABLE, type_bonus=TYPE_BONUS),
            kept=BOTH,
        ),
        Method(
            name="positive_only",
            summary="merit, but negatives are neither kept nor retrieved",
            policy=RetrievalPolicy(pools=POSITIVES_ONLY),
            kept=POSITIVE,
        ),
        Method(
            name="no_type_filter",
            summary="merit, but pools are never narrowed to the failure's type",
            policy=RetrievalPolicy(type_filter=TypeFilter.NEVER),
            kept=BOTH,
        ),
        Method(
            name="no_dense",
            summary="merit, but ranked by BM25 alone",
            policy=RetrievalPolicy(dense_weight=0.0),
            kept=BOTH,
        ),
        Method(
            name="no_bm25",
            summary="merit, but ranked by vectors alone",
            policy=RetrievalPolicy(lexical_weight=0.0),
            kept=BOTH,
        ),
        Method(
            name="random_same_type",
            summary="merit, but drawn at random from the typed pools, seeded by order, query and step",
            policy=RetrievalPolicy(shuffle_order=0),
            kept=BOTH,
        ),
        Method(
            name="cross_database_only",
            summary="merit, but nothing that came from the same database is served",
            policy=RetrievalPolicy(scope=Scope.CROSS_DATABASE),
            kept=BOTH,
        ),
        Method(
            name="merit_redraw",
            summary="merit, but a reply that repeats an attempt is refused and drawn again, warmer; not the "
            "paper's",
            policy=RetrievalPolicy(),
            kept=BOTH,
            on_repeat=OnRepeat.REDRAW,
        ),
    )
}
"""The methods by name: the paper's twelve (method.md §3), then ours."""
