"""What a run would ask for: calls and tokens by method, before any model is asked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from merit_sql.domain.episode import AttemptDict
from merit_sql.domain.failure import FailureKind, FailureType
from merit_sql.domain.memory import MemoryEntry, RankedMemory, Retrieved, Transition
from merit_sql.domain.status import Polarity, Status
from merit_sql.eval.bench import Plan, Selection
from merit_sql.eval.datasets import Question, Suite
from merit_sql.eval.initial import case_of
from merit_sql.graph.method import Method
from merit_sql.nodes.oracle import given
from merit_sql.prompts.rendering import render_initial, render_reflection, render_repair

WRONG_SHARE = 425 / 1034
"""Share of initial predictions that were wrong in the published Spider run (method.md §5)."""

STEPS_SHARE = 6.082 / 7
"""Revisions an initially wrong question took there, per revision of its budget (`iterative`)."""

SQL_TOKENS, REFLECTION_TOKENS = 40, 90
"""Tokens of a reply with SQL in its tags, and of a reflection: what the embedded 1.5B model writes."""

_SAMPLED = 50
_SQL = "SELECT a, count(*) FROM first JOIN second ON first.id = second.first_id WHERE kind = 'x' GROUP BY 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Expected model calls and tokens; tokens of prompts are by the estimate that budgets them."""

    name: str
    calls: float
    prompt_tokens: float
    output_tokens: float

    def cost(self, prompt_price: float, output_price: float) -> float:
        """What it would cost at prices per million tokens, in their currency."""
        return (self.prompt_tokens * prompt_price + self.output_tokens * output_price) / 1e6


def forecast(plan: Plan, suite: Suite, selection: Selection) -> list[Forecast]:
    """One row for the initial predictions, which all streams share, and one for each method's streams.

    Real prompts are rendered for a sample of the questions, with attempts of usual length and as many
    memories as the method may show. `WRONG_SHARE` of the questions are taken to be wrong at first, and
    each of them to take `STEPS_SHARE` of the budget. A method without memory asks the same in every order,
    and its recorded replies answer all but the first.
    """
    questions = selection.questions
    sample = questions[:: max(1, len(questions) // _SAMPLED)]
    rows = []
    if plan.predictions is None:
        tokens = fmean(_initial_tokens(plan, suite, question) for question in sample)
        rows.append(_row("initial predictions", len(questions), tokens, SQL_TOKENS))
    wrong = WRONG_SHARE * len(questions)
    for method in plan.methods:
        streams = len(plan.orders) if method.remembers else 1
        rows.append(_of_method(method, plan, suite, sample, wrong * streams))
    return rows


def _of_method(
    method: Method, plan: Plan, suite: Suite, sample: Sequence[Question], episodes: float
) -> Forecast:
    budget = plan.budget if method.revises else 0
    revisions = round(STEPS_SHARE * budget) if budget else 0
    repairs = [
        fmean(_repair_tokens(method, suite, one, k) for one in sample) for k in range(1, revisions + 1)
    ]
    row = _sum(method.name, [_row("", episodes, tokens, SQL_TOKENS) for tokens in repairs])
    if not method.reflects:
        return row
    thoughts = [
        fmean(_reflection_tokens(method, suite, one, k) for one in sample) for k in range(revisions + 1)
    ]
    return _sum(method.name, [row, *(_row("", episodes, tokens, REFLECTION_TOKENS) for tokens in thoughts)])


def _row(name: str, calls: float, prompt_tokens: float, output_tokens: float) -> Forecast:
    return Forecast(
        name=name, calls=calls, prompt_tokens=calls * prompt_tokens, output_tokens=calls * output_tokens
    )


def _sum(name: str, rows: Sequence[Forecast]) -> Forecast:
    return Forecast(
        name=name,
        calls=sum(row.calls for row in rows),
        prompt_tokens=sum(row.prompt_tokens for row in rows),
        output_tokens=sum(row.output_tokens for row in rows),
    )


def _initial_tokens(plan: Plan, suite: Suite, question: Question) -> int:
    schema = suite.catalogue[question.database_id].schema
    family = plan.methods[0].prompts
    return render_initial(family, case_of(question), schema, budget=plan.tokens.prompt).estimated_tokens


def _repair_tokens(method: Method, suite: Suite, question: Question, step: int) -> int:
    pools = () if method.policy is None else method.policy.pools
    memories = [_memory(pool.polarity or Polarity.POSITIVE) for pool in pools for _ in range(pool.limit)]
    return render_repair(
        method.prompts,
        case_of(question),
        suite.catalogue[question.database_id].schema,
        attempts=list(_attempts(step)),
        failure=_FAILURE,
        memories=Retrieved(memories=tuple(memories)),
        reflections=["x" * 4 * REFLECTION_TOKENS] * step if method.reflects else [],
        shows_reflections=method.reflects,
    ).estimated_tokens


def _reflection_tokens(method: Method, suite: Suite, question: Question, step: int) -> int:
    return render_reflection(
        method.prompts,
        case_of(question),
        suite.catalogue[question.database_id].schema,
        attempts=list(_attempts(step + 1)),
        failure=_FAILURE,
    ).estimated_tokens


_FAILURE = FailureType(kind=FailureKind.RESULT_MISMATCH, subtype="Unknown", decided_by="")


def _attempts(count: int) -> Iterator[AttemptDict]:
    for step in range(count):
        yield {
            **given(_SQL),
            "step": step,
            "status": Status.DENOTATION_MISMATCH.value,
            "error": None,
            "failure": _FAILURE.to_dict(),
            "opinion": "refuted",
            "confirmed_by": None,
            "official": None,
            "strict": None,
        }


def _memory(polarity: Polarity) -> RankedMemory:
    content = Transition(
        question="How many of them are there, and which is the first?",
        schema="",
        database_id="",
        error_type=FailureKind.RESULT_MISMATCH,
        failed_sql=_SQL,
        status=Status.DENOTATION_MISMATCH,
        db_error=None,
        sql_delta=f"{_SQL} => {_SQL}",
        outcome=Status.CORRECT,
        successful_direction=_SQL if polarity is Polarity.POSITIVE else "",
    )
    entry = MemoryEntry(
        id="0" * 64,
        polarity=polarity,
        content=content,
        confirmations=1,
        successes=1,
        failures=0,
        observations=(),
    )
    return RankedMemory(entry=entry, score=0.0, dense=0.0, lexical=0.0, same_type=True)
