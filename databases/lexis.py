"""SQLite's own lexical rules: what is a word, a quoted name, a comment, and where a statement ends."""

import re
from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """What a lexeme is; spaces and comments are none."""

    WORD = "word"
    QUOTED = "quoted"
    SEMICOLON = "semicolon"
    OPEN = "open"
    CLOSE = "close"
    OTHER = "other"


class Lexeme(NamedTuple):
    """One lexeme with the number of round brackets open around it."""

    kind: Kind
    text: str
    depth: int

    @property
    def name(self) -> str:
        """Its text lower-cased, without the quotes of a quoted name."""
        return (self.text[1:-1] if self.kind is Kind.QUOTED else self.text).lower()


# A byte order mark is white space to SQLite, a vertical tab and U+00A0 are not. A quote or comment that
# is never closed runs to the end of the text. Possessive quantifiers keep every branch linear.
_LEXEME = re.compile(
    r"""
      (?: [ \t\n\f\r\ufeff]++ | --[^\n]*+ | /\*(?s:.*?)(?:\*/|\Z) )
    | (?P<WORD> [^\W\d] [\w$]*+ )
    | (?P<QUOTED> '(?:[^']++|'')*+(?:'|\Z) | "(?:[^"]++|"")*+(?:"|\Z) | `(?:[^`]++|``)*+(?:`|\Z)
        | \[[^\]]*+(?:\]|\Z) )
    | (?P<SEMICOLON> ; )
    | (?P<OPEN> \( )
    | (?P<CLOSE> \) )
    | (?P<OTHER> \d[\w.]*+ | (?s:.) )
    """,
    re.VERBOSE,
)
_KINDS = {kind.name: kind for kind in Kind}


def lexemes(sql: str) -> list[Lexeme]:
    """Every lexeme of `sql` in order, in time linear in its length.

    >>> [lexeme.text for lexeme in lexemes("SELECT 'a;b' -- c;\\n;")]
    ['SELECT', "'a;b'", ';']
    """
    found: list[Lexeme] = []
    depth = 0
    for match in _LEXEME.finditer(sql):
        group = match.lastgroup
        if group is None:
            continue
        kind = _KINDS[group]
        if kind is Kind.CLOSE:
            depth -= 1
        found.append(Lexeme(kind, match.group(), depth))
        if kind is Kind.OPEN:
            depth += 1
    return found
