"""One page: a prompt's material under one set of cuts, as text."""

from collections.abc import Sequence
from dataclasses import dataclass
from string import Template

from merit_sql.domain.episode import AttemptDict, Case
from merit_sql.domain.failure import FailureType
from merit_sql.domain.memory import NO_ERROR, RankedMemory, failure_context
from merit_sql.domain.schema import Schema
from merit_sql.domain.status import Polarity
from merit_sql.prompts.families import PromptFamily, blocks_of, fill
from merit_sql.prompts.plan import attempt_name, memory_name, reflection_name, table_name
from merit_sql.prompts.schema_text import table_text
from merit_sql.prompts.text import capped, one_line, one_line_sql

EMPTY_SECTION = "(none)"
"""What a section says that has nothing in it."""

NO_SQL = "(no SQL)"
"""Stands for the SQL of a reply that held none."""

TEXT_LIMIT = 2_000
"""Characters of one question, evidence, SQL or reflection before anything is cut for the budget."""

ERROR_LIMIT = 400
"""Characters of one DBMS message."""

COLUMN_LIMIT = 4_000
"""Columns of one table."""

LEAST = 40
"""What halving the caps never goes below: characters of a text; columns may go down to one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Everything that one prompt might show: attempts oldest first, memories best first."""

    family: PromptFamily
    template: str
    attempt_block: str
    case: Case
    schema: Schema
    attempts: Sequence[AttemptDict] = ()
    failure: FailureType | None = None
    memories: Sequence[RankedMemory] = ()
    shows_experience: bool = False
    reflections: Sequence[str] = ()
    shows_reflections: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """A page's text, and the names of what it had to shorten."""

    text: str
    shortened: tuple[str, ...]


class Page:
    """One rendering; it notes what it has to shorten while it goes."""

    def __init__(self, material: Material, left_out: frozenset[str], halvings: int) -> None:
        """Leave out the named parts, and halve every cap that often."""
        self._material = material
        self._left_out = left_out
        self._halvings = halvings
        self._blocks = blocks_of(material.family)
        self._shortened: dict[str, None] = {}

    def render(self) -> Rendering:
        """The template filled with what is left in."""
        case = self._material.case
        evidence = self._text("evidence", case.evidence)
        values = {
            "schema": self._schema(),
            "question": self._text("question", case.question),
            "evidence": self._block("evidence", evidence=evidence) if evidence else "",
            "attempts": self._attempts(),
            "experience": self._experience(),
            "reflections": self._reflections(),
            **self._feedback(),
        }
        text = fill(self._material.template, values)
        return Rendering(text=text, shortened=tuple(self._shortened))

    def _schema(self) -> str:
        limit = max(1, COLUMN_LIMIT >> self._halvings)
        tables = [table for table in self._material.schema if table_name(table) not in self._left_out]
        for table in tables:
            if len(table.columns) > limit:
                self._shortened[f"cut:{table_name(table)}"] = None
        return "\n".join(table_text(table, limit) for table in tables) or EMPTY_SECTION

    def _attempts(self) -> str:
        lines = [
            self._block(
                self._material.attempt_block,
                step=str(attempt["step"]),
                sql=self._sql(attempt_name(attempt), attempt["sql"]),
                status=attempt["status"],
                error=self._error(attempt_name(attempt), attempt["error"]),
            )
            for attempt in self._material.attempts
            if attempt_name(attempt) not in self._left_out
        ]
        return "\n".join(lines) or EMPTY_SECTION

    def _experience(self) -> str:
        if not self._material.shows_experience:
            return ""
        shown = [m for m in self._material.memories if memory_name(m) not in self._left_out]
        parts = {
            polarity: "\n".join(self._memory(m) for m in shown if m.entry.polarity is polarity)
            for polarity in Polarity
        }
        return self._block(
            "experience",
            positives=parts[Polarity.POSITIVE] or EMPTY_SECTION,
            negatives=parts[Polarity.NEGATIVE] or EMPTY_SECTION,
        )

    def _memory(self, memory: RankedMemory) -> str:
        name, content = memory_name(memory), memory.entry.content
        sql, error = self._sql(name, content.failed_sql), self._error(name, content.db_error)
        before, after = _ends(content.sql_delta, content.failed_sql, memory.entry.polarity)
        unchanged = before == after
        return self._block(
            memory.entry.polarity.value,
            id=one_line(memory.entry.id),
            short_id=one_line(memory.entry.id[:12]),
            type=content.error_type.value,
            context=failure_context(sql, content.status, error),
            sql=sql,
            status=content.status.value,
            outcome=content.outcome.value,
            error=error,
            direction=self._sql(name, content.successful_direction or after),
            before="the same query" if unchanged else self._sql(name, before),
            delta=f"{self._sql(name, before)} => {self._sql(name, after)}",
        )

    def _reflections(self) -> str:
        if not self._material.shows_reflections:
            return ""
        shown = [
            self._block("reflection", reflection=self._text(reflection_name(n), text))
            for n, text in enumerate(self._material.reflections)
            if reflection_name(n) not in self._left_out
        ]
        return self._block("reflections", reflections="\n".join(shown) or EMPTY_SECTION)

    def _feedback(self) -> dict[str, str]:
        failure = self._material.failure
        if failure is None:
            return {}
        newest = self._material.attempts[-1]
        kind, subtype = failure.kind.value, failure.subtype
        return {
            "status": newest["status"],
            "type": kind if subtype in {kind, "Unknown"} else f"{kind} ({subtype})",
            "error": self._error("feedback", newest["error"]),
            "advice": self._blocks.get(f"advice {kind}", ""),
        }

    def _block(self, name: str, **values: str) -> str:
        return Template(self._blocks[name]).substitute(values)

    def _text(self, name: str, text: str) -> str:
        return self._short(name, one_line(text).strip(), TEXT_LIMIT)

    def _sql(self, name: str, sql: str) -> str:
        return self._short(name, one_line_sql(sql), TEXT_LIMIT) or NO_SQL

    def _error(self, name: str, error: str | None) -> str:
        return self._short(name, one_line(error or "").strip(), ERROR_LIMIT) or NO_ERROR

    def _short(self, name: str, text: str, limit: int) -> str:
        limit = max(LEAST, limit >> self._halvings)
        if len(text) > limit:
            self._shortened[f"cut:{name}"] = None
        return capped(text, limit)


def _ends(delta: str, failed_sql: str, polarity: Polarity) -> tuple[str, str]:
    """Both sides of a delta: the failed SQL is its beginning for a positive, its end for a negative."""
    arrow = " => "
    if polarity is Polarity.POSITIVE and delta.startswith(failed_sql + arrow):
        return failed_sql, delta[len(failed_sql + arrow) :]
    if polarity is Polarity.NEGATIVE and delta.endswith(arrow + failed_sql):
        return delta[: -len(arrow + failed_sql)], failed_sql
    before, _, after = delta.partition(arrow)
    return before, after
