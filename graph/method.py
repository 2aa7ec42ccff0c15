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
