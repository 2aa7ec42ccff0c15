"""The reflect node: one verbal reflection on the failed attempts, local to the episode."""

from collections.abc import Callable

from langchain_core.language_models import BaseChatModel

from merit_sql.domain.episode import AttemptDict, Case, ReflectionDict
from merit_sql.domain.execution import Database
from merit_sql.domain.failure import FailureType
from merit_sql.models.decoding import Decoding
from merit_sql.nodes.asking import ask
from merit_sql.nodes.state import EpisodeState, Node, case_of, standing_attempt
from merit_sql.prompts.extraction import extract_reflection
from merit_sql.prompts.rendering import PromptFamily, TokenBudget, render_reflection

DEFAULT_TOKENS = TokenBudget()


def write_reflection(
    model: BaseChatModel,
    family: PromptFamily,
    case: Case,
    database: Database,
    *,
    attempts: list[AttemptDict],
    tokens: TokenBudget = DEFAULT_TOKENS,
) -> ReflectionDict:
    """What the model says about the refused attempts, oldest first, of which the newest is classified.

    The text is empty where the reply holds no reflection; it cost its tokens all the same.
    """
    failure = standing_attempt(attempts)["failure"]
    if failure is None:
        raise ValueError("the newest attempt was not classified before it was reflected on")
    prompt = render_reflection(
        family,
        case,
        database.schema,
        attempts=attempts,
        failure=FailureType.from_dict(failure),
        budget=tokens.prompt,
    )
    reply = ask(model, prompt, Decoding(max_tokens=tokens.reflection))
    return {"step": attempts[-1]["step"], "text": extract_reflection(reply.text), "usage": reply.usage}


def make_reflect(
    model: BaseChatModel,
    databases: Callable[[str], Database],
    family: PromptFamily,
    *,
    tokens: TokenBudget = DEFAULT_TOKENS,
) -> Node:
    """The node; it reflects after every failed attempt, the last one included."""

    def reflect(state: EpisodeState) -> EpisodeState:
        case = case_of(state)
        reflection = write_reflection(
            model, family, case, databases(case.database_id), attempts=state["attempts"], tokens=tokens
        )
        return {"reflections": [*state["reflections"], reflection]}

    return reflect
