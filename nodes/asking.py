"""One call of the model: a prompt as a single user message, and the reply with what it cost."""

from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from merit_sql.domain.episode import UsageDict
from merit_sql.models.decoding import Decoding
from merit_sql.prompts.rendering import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's reply as an episode uses it; `usage` holds None where the server did not say."""

    text: str
    usage: UsageDict
    finish_reason: str | None


def ask(model: BaseChatModel, prompt: Prompt, decoding: Decoding) -> Reply:
    """Send one user message and take what an episode needs out of the answer."""
    message = model.invoke([HumanMessage(prompt.text)], **decoding.call_options())
    reported = message.usage_metadata
    usage: UsageDict = {
        "prompt_tokens": reported["input_tokens"] if reported else None,
        "output_tokens": reported["output_tokens"] if reported else None,
    }
    reason = message.response_metadata.get("finish_reason")
    return Reply(text=message.text, usage=usage, finish_reason=reason if isinstance(reason, str) else None)
