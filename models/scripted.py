"""A chat model that answers from a script: the test double that ships with the product."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from merit_sql.domain.errors import ModelError
from merit_sql.models.identity import ModelIdentity
from merit_sql.models.messages import rendered, result

BYTES_PER_TOKEN = 3.5
"""What one token is taken to be where usage is an estimate, in bytes of UTF-8."""


class ScriptedChatModel(BaseChatModel):
    """Replies in the order of a script, or by a function of the prompt.

    A reply is a text, or an `AIMessage` that is returned as it stands. `prompts` and `options` hold what was
    asked, in the order of the calls: the messages' texts joined by blank lines, and the call's options.
    Usage is an estimate of 3.5 bytes a token; `reports_usage` False leaves it unknown. Safe for threads.
    """

    replies: Sequence[str | AIMessage] | Callable[[str], str]
    reports_usage: bool = True
    model_name: str = "scripted"

    _prompts: list[str] = PrivateAttr(default_factory=list)
    _options: list[dict[str, Any]] = PrivateAttr(default_factory=list)
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    @property
    def prompts(self) -> list[str]:
        """What was asked so far."""
        return list(self._prompts)

    @property
    def options(self) -> list[dict[str, Any]]:
        """With which options it was asked so far, `stop` included where it was given."""
        return list(self._options)

    @property
    def identity(self) -> ModelIdentity:
        """A script has no weights: its name is all there is."""
        return ModelIdentity(kind="scripted", model=self.model_name, revision="script")

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        prompt = "\n\n".join(message["content"] for message in rendered(messages))
        with self._lock:
            asked = len(self._prompts)
            self._prompts.append(prompt)
            self._options.append({**kwargs, **({"stop": stop} if stop else {})})
        reply = self._reply(prompt, asked)
        if isinstance(reply, AIMessage):
            return ChatResult(generations=[ChatGeneration(message=reply)])
        return result(
            reply,
            prompt_tokens=_estimate(prompt) if self.reports_usage else None,
            output_tokens=_estimate(reply) if self.reports_usage else None,
            finish_reason="stop",
        )

    def _reply(self, prompt: str, asked: int) -> str | AIMessage:
        if callable(self.replies):
            return self.replies(prompt)
        if asked >= len(self.replies):
            raise ModelError(
                f"the script has {len(self.replies)} replies and was asked a further time; "
                f"the prompt begins: {prompt[:200]!r}"
            )
        return self.replies[asked]


def _estimate(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) * 2 // int(2 * BYTES_PER_TOKEN))
