"""The gate: which statements may go to SQLite at all, decided before any of them gets there.

It is the first of four layers. The others, a read-only file, `query_only` and an authorizer, stand in the
worker and hold without it.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from merit_sql.databases.lexis import Kind, Lexeme, lexemes
from merit_sql.databases.worker import is_denied_function, is_denied_table
from merit_sql.domain.execution import EMPTY_REPLY, REFUSED

PARSED_CHARACTERS = 20_000
PARSED_DEPTH = 12
"""Longer or deeper statements are judged by their lexemes alone: sqlglot's time doubles with each bracket in
some of them. The benchmarks' gold queries are at most seven brackets deep."""

_REMEMBERED_CHARACTERS = 4_000
_CLAUSES: Mapping[str, bool | None] = {
    **dict.fromkeys(("from", "join"), True),
    **dict.fromkeys(("select", "where", "group", "having", "order", "limit", "window"), False),
    **dict.fromkeys(("union", "intersect", "except"), False),
    "in": None,
}
"""Words after which tables follow up to the end of a clause (True), once (None), or no longer (False)."""
_MAIN_VERBS = frozenset({"select", "values", "insert", "replace", "update", "delete"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRule:
    """A rule over the lexemes of the whole text, whether it parses or not."""

    name: str
    reason: str
    breaks: Callable[[Sequence[Lexeme]], bool]


def _several_statements(text: Sequence[Lexeme]) -> bool:
    ends = (i for i, lexeme in enumerate(text) if lexeme.kind is Kind.SEMICOLON)
    return next(ends, len(text)) < len(text) - 1


def _first_word(text: Sequence[Lexeme]) -> int:
    return next((i for i, lexeme in enumerate(text) if lexeme.kind is not Kind.OPEN), 0)


def _not_a_query(text: Sequence[Lexeme]) -> bool:
    first = text[_first_word(text)]
    return first.kind is not Kind.WORD or first.name not in {"select", "with"}


def _with_but_no_select(text: Sequence[Lexeme]) -> bool:
    start = _first_word(text)
    if text[start].name != "with":
        return False
    followers = [*text[start + 1 :], None]
    for lexeme, follower in zip(text[start:], followers, strict=True):
        if lexeme.kind is not Kind.WORD or lexeme.depth != text[start].depth:
            continue
        verb = lexeme.name
        # REPLACE is also a name in SQLite: a function's, or a common table expression's.
        is_name = verb == "replace" and follower is not None and follower.name in {"(", "as"}
        if verb in _MAIN_VERBS and not is_name:
            return verb != "select"
    return False


def _names_denied_table(text: Sequence[Lexeme]) -> bool:
    return any(is_denied_table(lexeme.name) for lexeme in _table_names(text))


def _table_names(text: Sequence[Lexeme]) -> Iterator[Lexeme]:
    """Every name that stands where a table does: in a FROM clause, or after IN."""
    clauses = [False]
    """For each open bracket, innermost last, whether what is read in it is a FROM clause."""
    at_table = False
    for i, lexeme in enumerate(text):
        is_name = lexeme.kind is Kind.QUOTED or (lexeme.kind is Kind.WORD and lexeme.name not in _CLAUSES)
        if is_name and at_table:
            yield lexeme
        if lexeme.kind is Kind.OPEN:
            # IN takes a table's name, or a list or query in brackets.
            at_table = at_table and text[i - 1].name != "in"
            clauses.append(at_table)
        elif lexeme.kind is Kind.CLOSE:
            clauses = clauses[:-1] or [False]
            at_table = False
        elif lexeme.kind is Kind.WORD and lexeme.name in _CLAUSES:
            opens = _CLAUSES[lexeme.name]
            clauses[-1] = clauses[-1] if opens is None else opens
            at_table = opens is not False
        elif lexeme.text == ",":
            at_table = clauses[-1]
        else:
            # A schema's name and its point come before a table's.
            at_table = at_table and (lexeme.text == "." or (is_name and _text_at(text, i + 1) == "."))


def _text_at(text: Sequence[Lexeme], i: int) -> str:
    return text[i].text if i < len(text) else ""


def _calls_denied_function(text: Sequence[Lexeme]) -> bool:
    return any(
        after.kind is Kind.OPEN and is_denied_function(before.name)
        for before, after in itertools.pairwise(text)
    )


TEXT_RULES: tuple[TextRule, ...] = (
    TextRule(
        name="one statement",
        reason="whatever follows the first semicolon is a second statement, however it is disguised",
        breaks=_several_statements,
    ),
    TextRule(
        name="a query",
        reason="only SELECT, or WITH before a SELECT, reads and does nothing else",
        breaks=_not_a_query,
    ),
    TextRule(
        name="WITH before SELECT",
        reason="WITH may also stand before INSERT, REPLACE, UPDATE and DELETE",
        breaks=_with_but_no_select,
    ),
    TextRule(
        name="no function that leaves the database",
        reason="some functions read or write files, load code, or run SQL of their own",
        breaks=_calls_denied_function,
    ),
    TextRule(
        name="no table of the engine",
        reason="table-valued pragmas and page tables show the engine and the file, not the data",
        breaks=_names_denied_table,
    ),
)


def refusal(sql: str) -> str | None:
    """None when `sql` may go to SQLite, else the fixed text of its refusal; never raises.

    A statement that is blank or all comment gives `EMPTY_REPLY`, any other refused one `REFUSED`. Text
    that sqlglot cannot parse passes when its lexemes are one SELECT or WITH statement: only SQLite itself
    can say what is wrong with it, in the words that the classifier reads.

    >>> refusal("SELECT 1;") is None
    True
    >>> refusal("WITH a AS (SELECT 1) DELETE FROM t")
    'only SELECT or WITH queries are allowed'
    """
    return _remembered(sql) if len(sql) <= _REMEMBERED_CHARACTERS else _judge(sql)


def _judge(sql: str) -> str | None:
    text = lexemes(sql)
    if all(lexeme.kind is Kind.SEMICOLON for lexeme in text):
        return EMPTY_REPLY
    if any(rule.breaks(text) for rule in TEXT_RULES):
        return REFUSED
    if len(sql) > PARSED_CHARACTERS or max(lexeme.depth for lexeme in text) > PARSED_DEPTH:
        return None
    # sqlglot takes 0.1 s to import: only what must be parsed pays for it.
    from merit_sql.databases.tree import broken_rule

    return None if broken_rule(sql) is None else REFUSED


_remembered = functools.lru_cache(maxsize=4096)(_judge)
