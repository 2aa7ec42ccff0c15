"""Chat models by name, the one way in: ``get_chat_model("embedded:qwen2.5-coder-1.5b")``."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel

from merit_sql.domain.errors import ModelError
from merit_sql.models.identity import ModelIdentity, identity

__all__ = ["ModelIdentity", "get_chat_model", "identity"]

_SERVED = re.compile(r"(?P<model>[!-~]+?)@(?P<base_url>https?://[!-~]+)")


def get_chat_model(name: str, **options: Any) -> BaseChatModel:  # noqa: ANN401 - each back end has its own
    """The chat model of that name; nothing is loaded, fetched or asked before its first call.

    | name | options |
    |---|---|
    | ``embedded:qwen2.5-coder-1.5b``, ``embedded:qwen2.5-coder-0.5b`` | as `EmbeddedChatModel` |
    | ``openai:MODEL@BASE_URL`` | as `ServerChatModel` |
    | ``vllm:MODEL`` | as `VLLMChatModel` |
    | ``replay:FILE`` | ``chosen``: which model's replies, where the record holds several |

    Raises `ModelError` for a name that is none of these.
    """
    kind, separator, rest = name.partition(":")
    make = _KINDS.get(kind)
    if make is None or not separator or not rest:
        raise ModelError(f"there is no model {_safe(name)!r}; models are named {_forms()}")
    return make(rest, **options)


def _embedded(name: str, **options: Any) -> BaseChatModel:  # noqa: ANN401 - see get_chat_model
    from merit_sql.models.embedded import EmbeddedChatModel
    from merit_sql.models.registry import REGISTRY

    weights = REGISTRY.get(name)
    if weights is None or weights.chat is None:
        raise ModelError(f"there is no embedded model {name!r}; models are named {_forms()}")
    return EmbeddedChatModel(weights=weights, **options)


def _openai(rest: str, **options: Any) -> BaseChatModel:  # noqa: ANN401 - see get_chat_model
    from merit_sql.models.server import ServerChatModel

    match = _SERVED.fullmatch(rest)
    if match is None:
        raise ModelError(
            "a served model is named openai:MODEL@BASE_URL, without spaces and with a base URL that begins "
            "with http:// or https://, e.g. openai:qwen@http://localhost:8000/v1"
        )
    return ServerChatModel(model=match["model"], base_url=match["base_url"], **options)


def _vllm(model: str, **options: Any) -> BaseChatModel:  # noqa: ANN401 - see get_chat_model
    from merit_sql.models.vllm import VLLMChatModel

    return VLLMChatModel(model=model, **options)


def _replay(file: str, *, chosen: str | None = None) -> BaseChatModel:
    from merit_sql.models.record import RecordedChatModel, open_record, recorded_identity

    record = open_record(Path(file))
    return RecordedChatModel(records=[record], identity=recorded_identity(record, chosen))


_KINDS: dict[str, Callable[..., BaseChatModel]] = {
    "embedded": _embedded,
    "openai": _openai,
    "vllm": _vllm,
    "replay": _replay,
}


def _forms() -> str:
    from merit_sql.models.registry import REGISTRY

    embedded = [f"embedded:{weights.name}" for weights in REGISTRY.values() if weights.chat]
    return ", ".join([*embedded, "openai:MODEL@BASE_URL", "vllm:MODEL", "replay:FILE"])


def _safe(name: str) -> str:
    """The name without what stands before an ``@`` in a URL, where a password may be."""
    return re.sub(r"//[^/\s]*@", "//…@", name)
