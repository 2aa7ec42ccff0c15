"""Methods: one frozen value per repair strategy, and the registry of those that have a name."""

from dataclasses import dataclass, field

from merit_sql.domain.status import Polarity
from merit_sql.nodes.generate import OnRepeat
from merit_sql.prompts.rendering import FAMILIES, PromptFamily
from merit_sql.stores.ranking import RetrievalPolicy

BOTH = frozenset(Polarity)


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
            name="merit",
            summary="typed positive and negative memories, hybrid retrieval",
            policy=RetrievalPolicy(),
            kept=BOTH,
        ),
        Method(
            name="merit_redraw",
            summary="merit, but a reply that repeats an attempt is refused and drawn again, warmer",
            policy=RetrievalPolicy(),
            kept=BOTH,
            on_repeat=OnRepeat.REDRAW,
        ),
    )
}
"""The methods by name."""
