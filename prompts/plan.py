"""What a prompt that is too long leaves out, in order."""

import re
from collections.abc import Sequence

from merit_sql.domain.episode import AttemptDict, Case
from merit_sql.domain.memory import RankedMemory
from merit_sql.domain.schema import Schema, Table
from merit_sql.prompts.budget import TIGHTEN

HALVINGS = 12
"""How often the caps may be halved; after that a text has its least length and a table one column."""

_WORD = re.compile(r"\w+")
_STEM = re.compile(r"[a-z]+|[0-9]+")


def memory_name(memory: RankedMemory) -> str:
    """How `Prompt.dropped` names a memory."""
    return f"memory:{memory.entry.id[:12]}"


def attempt_name(attempt: AttemptDict) -> str:
    """How `Prompt.dropped` names an attempt."""
    return f"attempt:{attempt['step']}"


def reflection_name(index: int) -> str:
    """How `Prompt.dropped` names a reflection, by its place from 0."""
    return f"reflection:{index}"


def table_name(table: Table) -> str:
    """How `Prompt.dropped` names a table."""
    return f"table:{table.name}"


def cuts(
    *,
    case: Case,
    schema: Schema,
    attempts: Sequence[AttemptDict],
    memories: Sequence[RankedMemory],
    reflections: int,
) -> list[str]:
    """The order of cuts: method.md's, then ours, so that a prompt always comes to fit.

    Memories, the lowest-ranked first; attempts and reflections, the oldest first, never the newest; tables
    that no attempt names, the least like the question first; then every cap is halved, again and again;
    then the tables that are left, in the same order. Instructions are never cut.
    """
    history: list[str] = []
    for age in range(max(len(attempts), reflections)):
        if age < len(attempts) - 1:
            history.append(attempt_name(attempts[age]))
        if age < reflections - 1:
            history.append(reflection_name(age))
    tables = _least_relevant_first(schema, f"{case.question} {case.evidence}")
    named = _named(schema, [attempt["sql"] for attempt in attempts])
    return [
        *(memory_name(memory) for memory in reversed(memories)),
        *history,
        *(table_name(table) for table in tables if table.name not in named),
        *([TIGHTEN] * HALVINGS),
        *(table_name(table) for table in tables if table.name in named),
    ]


def _named(schema: Schema, queries: Sequence[str]) -> set[str]:
    text = "\n".join(queries).lower()
    words = set(_WORD.findall(text))
    return {
        table.name
        for table in schema
        if (name := table.name.lower()) in words or (not _WORD.fullmatch(name) and name in text)
    }


def _least_relevant_first(schema: Schema, asked: str) -> list[Table]:
    wanted = _stems(asked)

    def relevance(place: int) -> tuple[int, int, int]:
        table = schema.tables[place]
        columns = set().union(*(_stems(column.name) for column in table.columns))
        return (len(_stems(table.name) & wanted), len(columns & wanted), -place)

    return [schema.tables[place] for place in sorted(range(len(schema.tables)), key=relevance)]


def _stems(text: str) -> set[str]:
    """Lower-case words, those inside names like ``singerName`` and ``song_id`` too, without a plural s."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return {word.removesuffix("s") for word in _STEM.findall(spaced.lower()) if len(word) > 1}
