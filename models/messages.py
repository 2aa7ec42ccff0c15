"""Chat messages as plain data: one reading of them for records, servers and test doubles."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from merit_sql.domain.errors import ModelError

_ROLES: Mapping[type[BaseMessage], str] = {
    SystemMessage: "system",
    HumanMessage: "user",
    AIMessage: "assistant",
}


def rendered(messages: Sequence[BaseMessage]) -> list[dict[str, str]]:
    """Role and text of each message, in order; raises `ModelError` for a message of another kind."""
    plain = []
    for message in messages:
        role = next((role for kind, role in _ROLES.items() if isinstance(message, kind)), None)
        if role is None:
            raise ModelError(
                f"a message of type {message.type!r} cannot be sent: only system, user and assistant text can"
            )
        plain.append({"role": role, "content": message.text})
    return plain


def encodable(text: str) -> str:
    """The text with every lone surrogate, which UTF-8 cannot carry, replaced by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def result(
    text: str,
    *,
    prompt_tokens: int | None,
    output_tokens: int | None,
    finish_reason: str | None,
    metadata: Mapping[str, Any] | None = None,
    cached_tokens: int | None = None,
) -> ChatResult:
    """One reply as LangChain wants it; usage metadata only where both token counts are known."""
    message = AIMessage(content=text, response_metadata={"finish_reason": finish_reason, **(metadata or {})})
    if prompt_tokens is not None and output_tokens is not None:
        message.usage_metadata = {
            "input_tokens": prompt_tokens,
            "output_tokens": output_tokens,
            "total_tokens": prompt_tokens + output_tokens,
        }
        if cached_tokens is not None:
            message.usage_metadata["input_token_details"] = {"cache_read": cached_tokens}
    return ChatResult(generations=[ChatGeneration(message=message)])
