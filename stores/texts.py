"""The texts that retrieval compares: of a query, and of a memory in either channel."""

import re
from enum import StrEnum

from merit_sql.domain.memory import NO_ERROR, MemoryQuery, Transition

_TOKEN = re.compile(r"[a-z0-9_]+")


class MemoryText(StrEnum):
    """What an encoder reads of a memory.

    ``paper`` puts the schema second, where an encoder of 256 or 512 tokens may see nothing after it;
    ``compact`` leaves the schema out.
    """

    PAPER = "paper"
    COMPACT = "compact"


def query_text(query: MemoryQuery) -> str:
    """What both channels search for: question, current SQL, failure context, failure type."""
    return _labelled(
        ("question", query.question),
        ("sql", query.sql),
        ("failure", query.failure_context),
        ("type", query.error_type.value),
    )


def dense_text(content: Transition, memory_text: MemoryText) -> str:
    """What the encoder reads of a memory (method.md, "Dense memory text")."""
    schema = (("schema", content.schema),) if memory_text is MemoryText.PAPER else ()
    return _labelled(
        ("question", content.question),
        *schema,
        ("failure", content.failure_context),
        ("delta", content.normalized_delta),
        ("type", content.error_type.value),
        ("outcome", content.outcome.value),
        ("error", content.db_error or NO_ERROR),
    )


def lexical_text(content: Transition) -> str:
    """What BM25 reads of a memory (method.md, "BM25 memory text")."""
    return _labelled(
        ("question", content.question),
        ("failure", content.failure_context),
        ("delta", content.sql_delta),
        ("type", content.error_type.value),
        ("outcome", content.outcome.value),
        ("error", content.db_error or NO_ERROR),
        ("direction", content.successful_direction),
    )


def tokens(text: str) -> list[str]:
    """The tokens of BM25, in order and with repeats: runs of ``[a-z0-9_]`` of the lower-cased text."""
    return _TOKEN.findall(text.lower())


def encodable(text: str) -> str:
    """`text` with lone surrogates, which no tokenizer and no index takes, replaced by ``?``."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _labelled(*fields: tuple[str, str]) -> str:
    return encodable("\n".join(f"{label}: {value}" for label, value in fields))
