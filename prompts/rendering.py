"""Prompts: what each one carries, within its token budget."""

from collections.abc import Sequence
from dataclasses import dataclass

from merit_sql.domain.episode import AttemptDict, Case
from merit_sql.domain.failure import FailureType
from merit_sql.domain.memory import Retrieved
from merit_sql.domain.schema import Schema
from merit_sql.prompts.budget import (
    ESTIMATE,
    PROMPT_BUDGET,
    PromptBudgetError,
    TokenBudget,
    estimate_tokens,
    fit,
)
from merit_sql.prompts.families import FAMILIES, PromptFamily, template_hashes
from merit_sql.prompts.page import Material, Page, Rendering
from merit_sql.prompts.plan import cuts, memory_name
from merit_sql.prompts.schema_text import render_schema

__all__ = [
    "ESTIMATE",
    "FAMILIES",
    "PROMPT_BUDGET",
    "Prompt",
    "PromptBudgetError",
    "PromptFamily",
    "TokenBudget",
    "estimate_tokens",
    "render_initial",
    "render_reflection",
    "render_repair",
    "render_schema",
    "template_hashes",
]
NO_MEMORIES = Retrieved()
"""What a method without memory retrieved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One user message, and what was left out of it.

    `dropped` names parts (``memory:<id>``, ``attempt:<step>``, ``reflection:<n>``, ``table:<name>``) and
    texts that were shortened (``cut:<what>``); ids have their first 12 characters. `memory_ids` are the
    entries that it shows, whole ids. `version` is the template's first line.
    """

    text: str
    dropped: tuple[str, ...]
    estimated_tokens: int
    version: str
    memory_ids: tuple[str, ...] = ()


def render_initial(
    family: PromptFamily,
    case: Case,
    schema: Schema,
    *,
    memories: Retrieved = NO_MEMORIES,
    budget: int = PROMPT_BUDGET,
) -> Prompt:
    """The prompt for a first answer; memories show only where a method retrieved some before it."""
    material = Material(
        family=family,
        template=family.initial,
        attempt_block="attempt",
        case=case,
        schema=schema,
        memories=memories.memories,
        shows_experience=bool(memories.memories),
    )
    return _within(material, budget, "initial")


def render_repair(
    family: PromptFamily,
    case: Case,
    schema: Schema,
    *,
    attempts: Sequence[AttemptDict],
    failure: FailureType,
    memories: Retrieved,
    reflections: Sequence[str],
    shows_reflections: bool,
    budget: int = PROMPT_BUDGET,
) -> Prompt:
    """The prompt for the next attempt after `attempts`, oldest first, of which `failure` is the newest's.

    Refused repeats among the attempts are not listed again. Raises ValueError without an attempt.
    """
    material = Material(
        family=family,
        template=family.repair,
        attempt_block="attempt",
        case=case,
        schema=schema,
        attempts=_distinct(attempts),
        failure=failure,
        memories=memories.memories,
        shows_experience=True,
        reflections=reflections,
        shows_reflections=shows_reflections,
    )
    return _within(material, budget, "repair")


def render_reflection(
    family: PromptFamily,
    case: Case,
    schema: Schema,
    *,
    attempts: Sequence[AttemptDict],
    failure: FailureType,
    budget: int = PROMPT_BUDGET,
) -> Prompt:
    """The prompt for a verbal reflection on `attempts`, each with its status and error."""
    material = Material(
        family=family,
        template=family.reflection,
        attempt_block="judged attempt",
        case=case,
        schema=schema,
        attempts=_distinct(attempts),
        failure=failure,
    )
    return _within(material, budget, "reflection")


def _distinct(attempts: Sequence[AttemptDict]) -> list[AttemptDict]:
    distinct = [attempt for attempt in attempts if attempt["repeat_of"] is None]
    if not distinct:
        raise ValueError("there is no attempt to repair or reflect on: render the initial prompt instead")
    return distinct


def _within(material: Material, budget: int, template: str) -> Prompt:
    plan = cuts(
        case=material.case,
        schema=material.schema,
        attempts=material.attempts,
        memories=material.memories,
        reflections=len(material.reflections) if material.shows_reflections else 0,
    )

    def render(left_out: frozenset[str], halvings: int) -> Rendering:
        return Page(material, left_out, halvings).render()

    rendering, left_out = fit(render, plan, budget, template=f"{material.family.name}/{template}")
    return Prompt(
        text=rendering.text,
        dropped=left_out + rendering.shortened,
        estimated_tokens=estimate_tokens(rendering.text),
        version=material.template.partition("\n")[0],
        memory_ids=tuple(
            memory.entry.id for memory in material.memories if memory_name(memory) not in left_out
        ),
    )
