"""How a reply is drawn from a model: the settings that are sent, and recorded, with every call."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """Decoding settings of one call; greedy unless told otherwise.

    `draw` is 0 for the greedy reply and n for the n-th further sample of one prompt, which is also its
    `seed`: the reply record tells draws apart by the seed that was sent. `max_tokens` bounds the reply.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 512
    stop: tuple[str, ...] = ()
    seed: int | None = None
    draw: int = 0

    def call_options(self) -> dict[str, Any]:
        """Keyword arguments of ``model.invoke(messages, …)`` as any LangChain chat model takes them.

        Settings that say nothing (top-p of 1, no seed, no stop) are left out.
        """
        options: dict[str, Any] = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        if self.top_p != 1.0:
            options["top_p"] = self.top_p
        if self.seed is not None:
            options["seed"] = self.seed
        if self.stop:
            options["stop"] = list(self.stop)
        return options
