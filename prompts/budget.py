"""How a prompt is kept within its tokens: what to leave out, in which order, and how much is enough."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from merit_sql.domain.errors import MeritError

ESTIMATE = "utf8-bytes/3.5"
"""Name of the estimate, for manifests: the same for every model, so that prompts do not depend on one."""

PROMPT_BUDGET = 4096
"""Tokens, by the estimate, that a prompt may take (method.md, "One episode")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """Tokens that a prompt, a reply with SQL and a reflection may take (models.md, "Records and budgets").

    The prompt's are counted by the estimate, the replies' by the model that writes them.
    """

    prompt: int = PROMPT_BUDGET
    reply: int = 512
    reflection: int = 512


TIGHTEN = "tighten"
"""The step of a plan that halves every cap instead of leaving one part out."""


class PromptBudgetError(MeritError):
    """Not even the instructions fit into the budget that was asked for."""


def estimate_tokens(text: str) -> int:
    """ceil(UTF-8 bytes / 3.5), in whole numbers."""
    return -(-2 * len(text.encode("utf-8", "surrogatepass")) // 7)


class Sized(Protocol):
    """Anything with the text that will be sent."""

    @property
    def text(self) -> str:
        """The text whose tokens count."""
        ...


SizedT = TypeVar("SizedT", bound=Sized)


def fit(
    render: Callable[[frozenset[str], int], SizedT], plan: Sequence[str], budget: int, *, template: str
) -> tuple[SizedT, tuple[str, ...]]:
    """The rendering after the fewest steps of `plan` that fit `budget`, and the names those left out.

    `render` takes the names to leave out and how often to halve the caps; each step makes its text shorter.
    Raises `PromptBudgetError` where the whole plan is not enough.
    """

    def after(steps: int) -> SizedT:
        done = plan[:steps]
        return render(frozenset(done) - {TIGHTEN}, done.count(TIGHTEN))

    steps = bisect_left(range(len(plan) + 1), True, key=lambda n: estimate_tokens(after(n).text) <= budget)
    if steps > len(plan):
        needed = estimate_tokens(after(len(plan)).text)
        raise PromptBudgetError(
            f"the instructions of prompt {template} take {needed} tokens by the estimate {ESTIMATE} and the "
            f"budget is {budget}: raise the prompt budget to at least {needed}"
        )
    return after(steps), tuple(name for name in plan[:steps] if name != TIGHTEN)
