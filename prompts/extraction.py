"""What a model's reply carries: its one SQL statement, or its reflection, or the empty string.

Every pattern here is linear in the reply: at one place its alternatives begin differently, its unbounded
repetitions are possessive, and what several matches may read again is bounded.
"""

import re
from dataclasses import dataclass

_OPENER = re.compile(r"<answer\b[^<>]*+>", re.IGNORECASE)
_CLOSER = re.compile(r"</answer\s*+>", re.IGNORECASE)
_REFLECTION_OPENER = re.compile(r"<reflection\b[^<>]*+>", re.IGNORECASE)
_REFLECTION_CLOSER = re.compile(r"</reflection\s*+>", re.IGNORECASE)
_ROLE = re.compile(r"^[^\S\n]*+(?:human|assistant|user|system)[^\S\n]*+:", re.IGNORECASE | re.MULTILINE)
_TAG = re.compile(r"</?(?:reflection|answer|think|sql|query)\b[^<>]*+>", re.IGNORECASE)
_FENCE = "```"
_LANGUAGE = re.compile(r"[ \t]*+(?!(?:select|with)\b)[\w+-]{1,20}(?=\s)", re.IGNORECASE)

_BLOCK_COMMENT = r"/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
_GAP = r"(?:\s|--[^\n]{0,200}\n|/\*[^*]{0,200}\*/)"
_NAME = r"(?:\w++|'[^']{1,200}'|\"[^\"]{1,200}\"|`[^`]{1,200}`|\[[^\]]{1,200}\])"
_WITH = rf"""
    with{_GAP}++(?:recursive{_GAP}++)?{_NAME}{_GAP}*+(?:\([^()]*+\){_GAP}*+)?
    as{_GAP}*+(?:(?:not{_GAP}++)?materialized{_GAP}*+)?\(
"""

_START = re.compile(
    rf"""
      ^[^\S\n]*+--[^\n]*+
    | {_BLOCK_COMMENT}
    | \b(?P<firm>(?-i:SELECT)\b|{_WITH})
    | (?:^|[:`(])[^\S\n]*+(?P<led>(?-i:select)\b|{_WITH})
    | \b(?P<soft>select)\b
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_BOUNDARY = re.compile(
    rf"""
      '(?:[^']|'')*+' | "(?:[^"]|"")*+" | `(?:[^`]|``)*+` | \[[^\]]*+\]
    | --[^\n]*+
    | {_BLOCK_COMMENT}
    | (?P<unclosed>['"`\[])
    | (?P<semicolon>;)
    | (?P<stop>
          </[a-z] | <[|｜] | <(?:answer|reflection|think|sql|query)>
        | ^[^\S\n]*+(?:human|assistant|user|system)[^\S\n]*+:
      )
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_NOTHING = re.compile(rf"(?:\s|;|--[^\n]*+|{_BLOCK_COMMENT})*+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    sql: str
    unclosed: bool = False
    stopped: bool = False


def extract_sql(reply: str) -> str:
    """The single SQL statement that a reply carries, without its semicolon; empty if it is not just one.

    The first ``<answer>`` block counts, else the whole text; in it the first fenced block; there, from the
    first SELECT or WITH on, up to a stray tag or a line that begins with a role such as ``Human:``. More
    after a semicolon than space and comments, quoted semicolons aside, makes the result empty. A WITH
    counts only where ``name AS (`` follows, and a SELECT that reads like prose (``then select the …``)
    only where no other is left. A statement whose last quote is never closed is returned as it stands:
    the DBMS says what is wrong with it. Quotes follow SQL, where a backslash escapes nothing.

    >>> extract_sql("Sure. <answer>SELECT ';' FROM t;</answer>")
    "SELECT ';' FROM t"
    >>> extract_sql("SELECT 1; DROP TABLE t")
    ''
    """
    opener = _OPENER.search(reply)
    if opener is None:
        return _find(reply).sql
    body = reply[opener.end() :]
    closer = _CLOSER.search(body)
    if closer is None:
        return _find(body).sql
    found = _find(body[: closer.start()])
    if found.unclosed:
        # The closing tag may stand inside a string literal: then the next one ends the block.
        beyond = _find(body)
        if beyond.stopped and not beyond.unclosed:
            return beyond.sql
    return found.sql


def extract_reflection(reply: str) -> str:
    """The sentences of a reply to the reflection prompt; empty where it holds none.

    The first ``<reflection>`` block counts, or what follows a tag that is never closed, else the whole
    text; it ends at a line that begins with a role such as ``Human:``. What else looks like one of the
    prompts' own tags is left out.

    >>> extract_reflection("Well. <reflection>The join lacks a key.</reflection> SELECT 1")
    'The join lacks a key.'
    """
    opener = _REFLECTION_OPENER.search(reply)
    body = reply if opener is None else reply[opener.end() :]
    closer = None if opener is None else _REFLECTION_CLOSER.search(body)
    if closer is not None:
        body = body[: closer.start()]
    role = _ROLE.search(body)
    if role is not None:
        body = body[: role.start()]
    return _TAG.sub(" ", body).strip()


def _find(block: str) -> _Found:
    text = _fenced(block)
    start = _start(text)
    if start is None:
        return _Found(sql="")
    return _statement(text, start)


def _fenced(block: str) -> str:
    before, fence, after = block.partition(_FENCE)
    if not fence:
        return block
    inside, closing, _ = after.partition(_FENCE)
    language = _LANGUAGE.match(inside)
    if language:
        inside = inside[language.end() :]
    # A single fence may close a block whose opening was never written.
    return inside if closing or _start(inside) is not None else before


def _start(text: str) -> int | None:
    soft: int | None = None
    for match in _START.finditer(text):
        for group in ("firm", "led"):
            if match[group]:
                return match.start(group)
        if match["soft"] and soft is None:
            soft = match.start("soft")
    return soft


def _statement(text: str, start: int) -> _Found:
    end, stop = None, len(text)
    unclosed = stopped = False
    for match in _BOUNDARY.finditer(text, start):
        if match["semicolon"] and end is None:
            end = match.start()
        if match["stop"]:
            stop, stopped = match.start(), True
            break
        if match["unclosed"]:
            unclosed = True
            break
    if end is None:
        return _Found(sql=text[start:stop].strip(), unclosed=unclosed, stopped=stopped)
    alone = _NOTHING.fullmatch(text, end, stop) is not None
    return _Found(sql=text[start:end].strip() if alone else "", stopped=stopped)
