"""Foreign text on its way into a prompt: one line each, capped, and unable to break the frame."""

import re

FRAME_TAGS = (
    "answer",
    "attempts",
    "corrections",
    "evidence",
    "failed_directions",
    "feedback",
    "question",
    "reflection",
    "reflections",
    "schema",
)
"""Tags that the templates open and close; in data they lose their form."""

_FOREIGN_TAGS = ("s", "bos", "eos", "unk", "pad", "start_of_turn", "end_of_turn", "think", "tool_call")

_TAG = re.compile(
    rf"<(?=/?(?:{'|'.join((*FRAME_TAGS, *_FOREIGN_TAGS))})(?!\w)|[|｜]|</?SYS>)|\[(?=/?INST\])",
    re.IGNORECASE,
)
_ROLE = re.compile(r"\A(\s*+(?:human|assistant|user|system))(?=\s*:)", re.IGNORECASE)
_LINE_SPACE = re.compile(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")

_SQL_PIECE = re.compile(
    r"""
      (?P<quoted>
          '(?:[^']|'')*+(?:'|\Z) | "(?:[^"]|"")*+(?:"|\Z) | `(?:[^`]|``)*+(?:`|\Z) | \[[^\]]*+(?:\]|\Z)
      )
    | (?:--[^\n]*+ | /\*(?:[^*]|\*(?!/))*+(?:\*/|\Z) | \s++)++
    """,
    re.VERBOSE,
)


def one_line(text: str) -> str:
    """`text` without line breaks, control characters and lone surrogates, harmless to the frame.

    Tags of our own, control tokens of chat templates (``<|im_start|>``, ``[INST]`` and the like) and a role
    at the very start (``Assistant:``) are broken by one space; everything else stays readable as it was.
    """
    text = _SURROGATE.sub("\ufffd", _CONTROL.sub("", _LINE_SPACE.sub(" ", text)))
    return _ROLE.sub(r"\1 ", _TAG.sub(lambda match: f"{match.group()} ", text))


def one_line_sql(sql: str) -> str:
    """SQL on one line: comments dropped, space outside quotes collapsed, then as `one_line`."""
    return one_line(_SQL_PIECE.sub(lambda match: match["quoted"] or " ", sql).strip())


def capped(text: str, limit: int) -> str:
    """`text` if it has at most `limit` characters, else its beginning and how many were left out."""
    if len(text) <= limit:
        return text
    kept = limit - len(f" [{len(text)} more characters]")
    return f"{text[:kept]} [{len(text) - kept} more characters]"
