"""What a stream measures (method.md §5), from its records and its initial predictions."""

from collections.abc import Sequence
from dataclasses import dataclass

from merit_sql.domain.episode import EpisodeRecord, UsageDict
from merit_sql.domain.sql import oscillation_form


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """A sum of tokens; `unknown` counts the calls whose server did not say."""

    known: int = 0
    unknown: int = 0

    def plus(self, tokens: int | None) -> "Tokens":
        """The sum with one more call."""
        if tokens is None:
            return Tokens(known=self.known, unknown=self.unknown + 1)
        return Tokens(known=self.known + tokens, unknown=self.unknown)

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(known=self.known + other.known, unknown=self.unknown + other.unknown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the model calls of one role came to, as if every one of them had been made for this method."""

    calls: int = 0
    prompt_tokens: Tokens = Tokens()
    output_tokens: Tokens = Tokens()

    def plus(self, usage: UsageDict | None, *, calls: int = 1) -> "Cost":
        """The sum with one more reply; its tokens are unknown where `usage` does not say."""
        return Cost(
            calls=self.calls + calls,
            prompt_tokens=self.prompt_tokens.plus(usage["prompt_tokens"] if usage else None),
            output_tokens=self.output_tokens.plus(usage["output_tokens"] if usage else None),
        )

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The figures of one stream.

    Counts are of questions, `correct` by the strict verdict and `official` the sum of the official scores
    (0–1 each) of the final attempts. `generations` counts repair generations, `executions` the attempts
    that a database ran. `initial`, `repair` and `reflection` are the costs by role; an initial prediction
    that was handed in costs 0 calls and unknown tokens.
    """

    questions: int
    correct: int
    official: float
    initially_wrong: int
    repaired: int
    regressions: int
    generations: int
    oscillating: int
    executions: int
    initial: Cost
    repair: Cost
    reflection: Cost

    @property
    def cost(self) -> Cost:
        """All model calls: initial, repair and reflection (method.md §5)."""
        return self.initial + self.repair + self.reflection

    @property
    def calls(self) -> int:
        """N initial + repair + reflection calls."""
        return self.cost.calls

    @property
    def prompt_tokens(self) -> Tokens:
        """Prompt tokens of all calls."""
        return self.cost.prompt_tokens

    @property
    def output_tokens(self) -> Tokens:
        """Output tokens of all calls."""
        return self.cost.output_tokens

    @property
    def execution_accuracy(self) -> float | None:
        """Finally correct / N, in [0, 1]; None for no questions."""
        return ratio(self.correct, self.questions)

    @property
    def official_accuracy(self) -> float | None:
        """Mean official score of the final attempts, in [0, 1]."""
        return ratio(self.official, self.questions)

    @property
    def steps(self) -> float | None:
        """Repair generations per initially wrong question."""
        return ratio(self.generations, self.initially_wrong)

    @property
    def oscillation(self) -> float | None:
        """Share of all questions in which some attempt equals an earlier one of its episode."""
        return ratio(self.oscillating, self.questions)

    @property
    def oscillation_of_wrong(self) -> float | None:
        """The same per initially wrong question: a right first answer leaves nothing to repeat."""
        return ratio(self.oscillating, self.initially_wrong)


def ratio(part: float, whole: int) -> float | None:
    """part / whole, or None where there is no whole."""
    return part / whole if whole else None


def oscillates(sqls: Sequence[str]) -> bool:
    """Whether some attempt equals an earlier one: stripped, no trailing ``;``, lower case, one space."""
    forms = [oscillation_form(sql) for sql in sqls]
    return len(set(forms)) < len(forms)


def measure(records: Sequence[EpisodeRecord], initial_usage: Sequence[UsageDict | None]) -> Metrics:
    """The metrics of a stream of finished episodes.

    `initial_usage` holds one item an episode: the tokens of its initial prediction, or None where that was
    handed in (0 calls, unknown tokens).
    """
    correct = initially_wrong = repaired = regressions = generations = oscillating = executions = 0
    official = 0.0
    initial, repair, reflection = Cost(), Cost(), Cost()
    for record, first in zip(records, initial_usage, strict=True):
        attempts = record.attempts
        was_right, is_right = attempts[0]["strict"] == 1, attempts[-1]["strict"] == 1
        correct += is_right
        official += attempts[-1]["official"] or 0.0
        initially_wrong += not was_right
        repaired += is_right and not was_right
        regressions += was_right and not is_right
        generations += len(attempts) - 1
        oscillating += oscillates([attempt["sql"] for attempt in attempts])
        executions += sum(
            attempt["repeat_of"] is None and attempt["sql"].strip() != "" for attempt in attempts
        )
        initial = initial.plus(first, calls=int(first is not None))
        for attempt in attempts[1:]:
            repair = repair.plus(attempt["usage"])
        for one in record.reflections:
            reflection = reflection.plus(one["usage"])
    return Metrics(
        questions=len(records),
        correct=correct,
        official=official,
        initially_wrong=initially_wrong,
        repaired=repaired,
        regressions=regressions,
        generations=generations,
        oscillating=oscillating,
        executions=executions,
        initial=initial,
        repair=repair,
        reflection=reflection,
    )
