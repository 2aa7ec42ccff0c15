"""Normal forms of SQL text: of deltas, of attempts that repeat each other, of the oscillation metric."""

import re
import string

_QUOTED = r"""
      '(?:[^'\\]|\\.|'')*+(?:'|\\?\Z)
    | "(?:[^"\\]|\\.|"")*+(?:"|\\?\Z)
    | `(?:[^`\\]|\\.|``)*+(?:`|\\?\Z)
    | \[(?:[^\]\\]|\\.|\]\])*+(?:\]|\\?\Z)
"""
_REGION = re.compile(rf"(?P<quoted>{_QUOTED})", re.VERBOSE | re.DOTALL)
_SPACE = re.compile(r"\s+")
_PUNCTUATION = re.compile(r" ?([(),=<>!+\-*/]) ?")


def normalize(text: str) -> str:
    """Lower-case, collapse whitespace and drop spaces around ``( ) , = < > ! + - * /`` outside quotes.

    Quoted regions (``'…' "…" `…` […]``, with doubled closers and backslash escapes) stay untouched; one
    that is never closed runs to the end of the text. The result is stripped at both ends.

    >>> normalize("SELECT  COUNT( * ) FROM T WHERE a  =  'X  y'")
    "select count(*)from t where a='X  y'"
    """
    pieces: list[str] = []
    position = 0
    for match in _REGION.finditer(text):
        pieces.append(_plain(text[position : match.start()]))
        pieces.append(match.group())
        position = match.end()
    pieces.append(_plain(text[position:]))
    if pieces[0]:
        pieces[0] = pieces[0].lstrip()
    if pieces[-1]:
        pieces[-1] = pieces[-1].rstrip()
    return "".join(pieces)


def _plain(text: str) -> str:
    return _PUNCTUATION.sub(r"\1", _SPACE.sub(" ", text.lower()))


def delta(before: str | None, after: str) -> str:
    """The observed transformation, verbatim; ``initial SQL`` stands in where nothing came before."""
    return f"{'initial SQL' if before is None else before} => {after}"


def repeat_form(sql: str) -> str:
    """The form in which an attempt is compared with earlier ones: `normalize` less trailing semicolons."""
    return normalize(sql.rstrip(string.whitespace + ";"))


def oscillation_form(sql: str) -> str:
    """The form that the method's oscillation metric compares: strip, drop trailing ``;``, lower, collapse."""
    return _SPACE.sub(" ", sql.strip().rstrip(";").strip().lower())
