"""The generate node: one SQL from the model, the initial one and every revision alike."""

from collections.abc import Callable
from enum import StrEnum

from langchain_core.language_models import BaseChatModel

from merit_sql.domain.episode import AttemptDict, Case
from merit_sql.domain.execution import Database
from merit_sql.domain.failure import FailureType
from merit_sql.domain.memory import Retrieved
from merit_sql.domain.sql import repeat_form
from merit_sql.models.decoding import Decoding
from merit_sql.nodes.asking import Reply, ask
from merit_sql.nodes.served import use_of
from merit_sql.nodes.state import (
    Candidate,
    EpisodeState,
    Node,
    case_of,
    opening,
    retrieved_of,
    standing_attempt,
)
from merit_sql.prompts.extraction import extract_sql
from merit_sql.prompts.rendering import Prompt, PromptFamily, TokenBudget, render_initial, render_repair

REDRAW_TEMPERATURES = (0.4, 0.8, 1.2)
"""Temperature of the first, the second, and every later redraw of one prompt."""

DEFAULT_TOKENS = TokenBudget()


class OnRepeat(StrEnum):
    """What becomes of a reply that equals an attempt already made."""

    KEEP = "keep"
    REDRAW = "redraw"


def decoding_of(attempts: list[AttemptDict], max_tokens: int) -> Decoding:
    """Greedy, unless the newest attempts were refused repeats: then warmer with each, seeded by the draw."""
    draw = 0
    for attempt in reversed(attempts):
        if attempt["repeat_of"] is None:
            break
        draw += 1
    if draw == 0:
        return Decoding(max_tokens=max_tokens)
    temperature = REDRAW_TEMPERATURES[min(draw, len(REDRAW_TEMPERATURES)) - 1]
    return Decoding(temperature=temperature, max_tokens=max_tokens, seed=draw, draw=draw)


def repeat_of(sql: str, attempts: list[AttemptDict]) -> int | None:
    """Step of the first attempt whose normal form equals that of `sql`; None where there is none."""
    form = repeat_form(sql)
    return next((attempt["step"] for attempt in attempts if repeat_form(attempt["sql"]) == form), None)


def write_initial(
    model: BaseChatModel,
    family: PromptFamily,
    case: Case,
    database: Database,
    *,
    tokens: TokenBudget = DEFAULT_TOKENS,
) -> Candidate:
    """The initial SQL of a case."""
    prompt = render_initial(family, case, database.schema, budget=tokens.prompt)
    return _candidate(ask(model, prompt, Decoding(max_tokens=tokens.reply)), prompt)


def write_revision(
    model: BaseChatModel,
    family: PromptFamily,
    case: Case,
    database: Database,
    *,
    attempts: list[AttemptDict],
    memories: Retrieved,
    reflections: list[str] | None,
    on_repeat: OnRepeat,
    tokens: TokenBudget = DEFAULT_TOKENS,
) -> Candidate:
    """The next attempt after the refused ones in `attempts`, oldest first; the newest is classified.

    `reflections` is None for a method that does not reflect.
    """
    failure = standing_attempt(attempts)["failure"]
    if failure is None:
        raise ValueError("the newest attempt was not classified before its revision was asked for")
    prompt = render_repair(
        family,
        case,
        database.schema,
        attempts=attempts,
        failure=FailureType.from_dict(failure),
        memories=memories,
        reflections=reflections or [],
        shows_reflections=reflections is not None,
        budget=tokens.prompt,
    )
    decoding = decoding_of(attempts, tokens.reply)
    revision = _candidate(ask(model, prompt, decoding), prompt)
    return {
        **revision,
        "step": attempts[-1]["step"] + 1,
        "draw": decoding.draw,
        "memory_ids": [id_ for id_ in memories.ids if id_ in prompt.memory_ids],
        "repeat_of": repeat_of(revision["sql"], attempts) if on_repeat is OnRepeat.REDRAW else None,
    }


def _candidate(reply: Reply, prompt: Prompt) -> Candidate:
    return {
        "step": 0,
        "sql": extract_sql(reply.text),
        "repeat_of": None,
        "draw": 0,
        "memory_ids": [],
        "memories": [],
        "usage": reply.usage,
        "finish_reason": reply.finish_reason,
        "dropped": list(prompt.dropped),
    }


def make_generate(
    model: BaseChatModel,
    databases: Callable[[str], Database],
    family: PromptFamily,
    *,
    on_repeat: OnRepeat,
    reflects: bool,
    next_position: Callable[[], int],
    budget: int,
    tokens: TokenBudget = DEFAULT_TOKENS,
) -> Node:
    """The node over a model; it opens the episode where no initial SQL was handed in."""

    def generate(state: EpisodeState) -> EpisodeState:
        opened = opening(state, next_position=next_position(), budget=budget)
        state = {**state, **opened}
        case, attempts = case_of(state), state["attempts"]
        database = databases(case.database_id)
        if not attempts:
            return {**opened, "candidate": write_initial(model, family, case, database, tokens=tokens)}
        reflections = [one["text"] for one in state["reflections"] if one["text"]] if reflects else None
        candidate = write_revision(
            model,
            family,
            case,
            database,
            attempts=attempts,
            memories=retrieved_of(state),
            reflections=reflections,
            on_repeat=on_repeat,
            tokens=tokens,
        )
        shown = [use_of(one) for one in state["retrieved"] if one["id"] in candidate["memory_ids"]]
        return {"candidate": {**candidate, "memories": shown}}

    return generate
