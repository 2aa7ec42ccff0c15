"""The first screen of a report: its five questions, answered in sentences from the figures."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from merit_sql.domain.episode import EpisodeRecord
from merit_sql.eval.breakdowns import right
from merit_sql.eval.report.costs import ROLES
from merit_sql.eval.report.failures import first_type
from merit_sql.eval.report.figures import Arm, Comparison, Part, percentage
from merit_sql.eval.report.sources import short
from merit_sql.eval.report.tables import ABSENT, Interval, Number

MOST = 4
"""How many lines an answer spends on groups that gain or lose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A question, the sentence that answers it, and what that rests on."""

    question: str
    answer: str
    details: tuple[str, ...] = ()


def warnings(parts: Sequence[Part]) -> list[str]:
    """What keeps the figures from being the last word, each a sentence; none for a whole run."""
    said = [sentence for part in parts for sentence in _unfinished(part)]
    for part in parts:
        for arm in part.arms:
            regressions = sum(one.regressions for one in arm.metrics)
            if regressions:
                said.append(f"{arm.name}: {regressions} questions were right at first and wrong in the end.")
        if part.source.differing:
            values = "; ".join(f"{field} = {short(value)}" for field, value in part.source.differing.items())
            said.append(
                f"{part.source.label} ({', '.join(part.source.names)}) has other settings than the rest, and "
                f"its figures are not pooled or compared with theirs. There, {values}."
            )
    return said


def _unfinished(part: Part) -> Iterator[str]:
    total = len(part.source.questions)
    for arm in part.arms:
        for stream in (*arm.streams, *arm.left_out):
            if not part.source.is_finished(stream):
                fate = "its figures are preliminary" if arm.partial else "it is left out of the figures"
                yield (
                    f"Unfinished: {arm.name}, order {stream.order}, has {len(stream.records)} of {total} "
                    f"episodes; {fate}."
                )
    if part.source.missing:
        names = ", ".join(f"{method} order {order}" for method, order in part.source.missing)
        yield f"Not begun: {names} (0 of {total} episodes each)."


def answers(part: Part) -> list[Answer]:
    """The answers that one source gives; the one about an episode is the page's own."""
    return [_better(part), _certain(part), _where(part), _cost(part)]


def _accuracy(arm: Arm) -> float:
    return percentage(arm.mean(lambda one: one.execution_accuracy)) or 0.0


def _better(part: Part) -> Answer:
    ranked = sorted(part.arms, key=_accuracy, reverse=True)
    best = ranked[0]
    level = [arm.name for arm in ranked if abs(_accuracy(arm) - _accuracy(best)) < 1e-9]
    held = best.spread(lambda one: percentage(one.execution_accuracy))
    repaired = best.mean(lambda one: one.repaired) or 0.0
    wrong = best.mean(lambda one: one.initially_wrong) or 0.0
    if len(ranked) == 1:
        said = f"Only {best.name} was run:"
    elif len(level) > 1:
        said = f"{_listed(level)} are level:"
    else:
        said = f"{best.name}:"
    return Answer(
        question="Which method is better?",
        answer=(
            f"{said} right on {held} % of {_questions(best)} questions, with {_count(repaired)} repaired of "
            f"{_count(wrong)} that were wrong at first."
        ),
        details=tuple(
            f"{arm.name}: {arm.spread(lambda one: percentage(one.execution_accuracy))} %, "
            f"95 % interval {_interval(arm)}"
            for arm in ranked
        ),
    )


def _certain(part: Part) -> Answer:
    if not part.comparisons:
        return Answer(
            question="Is that certain?",
            answer="There is nothing to compare: no other method shares questions with it.",
        )
    reference = part.reference.name
    better = [one.theirs.name for one in part.comparisons if one.is_certain and one.by_query.value > 0]
    worse = [one.theirs.name for one in part.comparisons if one.is_certain and one.by_query.value < 0]
    open_ = [one.theirs.name for one in part.comparisons if not one.is_certain]
    said = []
    if better:
        said.append(f"{reference} is better than {_listed(better)}: the interval leaves out 0.")
    if worse:
        said.append(f"{reference} is worse than {_listed(worse)}: the interval leaves out 0.")
    if open_:
        said.append(f"Between {reference} and {_listed(open_)} these questions do not decide.")
    return Answer(
        question="Is that certain?",
        answer=" ".join(said),
        details=tuple(_compared(one) for one in part.comparisons),
    )


def _compared(one: Comparison) -> str:
    interval = one.by_query.interval
    shown = ABSENT if interval is None else Interval(low=interval[0], high=interval[1])
    p_values = ", ".join(
        f"{p:.3f} (order {test.order})" for test, p in zip(one.tests, one.adjusted, strict=True)
    )
    difference = Number(value=one.by_query.value, decimals=2, signed=True)
    return (
        f"{one.ours.name} − {one.theirs.name}: {difference} points, 95 % interval {shown}, "
        f"{one.questions} questions; McNemar p after Holm: {p_values}"
    )


def _where(part: Part) -> Answer:
    question = "Where does it gain?"
    if not part.comparisons:
        return Answer(question=question, answer="There is no other method to gain on; see the breakdowns.")
    other = max((one.theirs for one in part.comparisons), key=_accuracy)
    difficulty = {str(one.id): one.difficulty or "(unnamed)" for one in part.source.questions}
    kinds: tuple[tuple[str, Callable[[EpisodeRecord], str | None]], ...] = (
        ("failure type", first_type),
        ("difficulty", lambda record: difficulty[record.query_id]),
        ("database", lambda record: record.database_id),
    )
    details = [f"By {name}: {_gains(part.reference, other, kind)}" for name, kind in kinds]
    return Answer(
        question=question,
        answer=(
            f"{part.reference.name} against {other.name}, the best of the others, in questions of one order:"
        ),
        details=tuple(details),
    )


def _gains(ours: Arm, theirs: Arm, kind: Callable[[EpisodeRecord], str | None]) -> str:
    """The groups in which one arm gets more or fewer questions right than the other, means over orders."""
    held = [
        {record.query_id for record in stream.records} for arm in (ours, theirs) for stream in arm.streams
    ]
    common = set.intersection(*held)
    gains: dict[str, float] = {}
    for arm, sign in ((ours, 1), (theirs, -1)):
        for stream in arm.streams:
            for record in stream.records:
                name = kind(record)
                if name is not None and record.query_id in common and right(record):
                    gains[name] = gains.get(name, 0.0) + sign / len(arm.streams)
    moved = sorted(
        ((name, gain) for name, gain in gains.items() if abs(gain) > 1e-9),
        key=lambda one: (-abs(one[1]), one[0]),
    )
    shown = [f"{name} {Number(value=gain, decimals=1, signed=True)}" for name, gain in moved[:MOST]]
    if len(moved) > MOST:
        shown.append(f"{len(moved) - MOST} more")
    return ", ".join(shown) or "no difference anywhere"


def _cost(part: Part) -> Answer:
    arm = part.reference
    calls, fewest = _calls(arm), min(part.arms, key=_calls)
    answer = (
        f"{arm.name}: {_count(arm.mean(lambda one: one.calls) or 0.0)} calls and {_tokens(arm)} tokens an "
        f"order, {calls:.2f} calls a question"
    )
    if _calls(fewest) < calls:
        answer += f"; the fewest, {_calls(fewest):.2f}, are those of {fewest.name}"
    return Answer(
        question="At what cost?", answer=answer + ".", details=tuple(_costs(one) for one in part.arms)
    )


def _calls(arm: Arm) -> float:
    """Calls a question, mean over orders."""
    return arm.mean(lambda one: one.calls / one.questions if one.questions else None) or 0.0


def _costs(arm: Arm) -> str:
    roles = []
    for name, cost in ROLES[1:]:
        used = [cost(one) for one in arm.metrics]
        known = sum(one.prompt_tokens.known + one.output_tokens.known for one in used) / len(used)
        unknown = any(one.prompt_tokens.unknown or one.output_tokens.unknown for one in used)
        if known or unknown:
            roles.append(f"{name} {_count(known)}{'+?' if unknown else ''}")
    timings = [stream.timings for stream in arm.streams]
    seconds = sum(one.seconds for one in timings)
    parts = ", ".join(
        f"{name} {_count(spent)}"
        for name, spent in (
            ("model", sum(one.model_seconds for one in timings)),
            ("databases", sum(one.database_seconds for one in timings)),
            ("retrieval", sum(one.retrieval_seconds for one in timings)),
            ("encoder", sum(one.encoder_seconds for one in timings)),
        )
    )
    return (
        f"{arm.name}: {_calls(arm):.2f} calls a question; "
        f"tokens {', '.join(roles) or 'none'}; "
        f"here {_count(sum(one.real_calls for one in timings))} real calls and {_count(seconds)} s ({parts})"
    )


def _tokens(arm: Arm) -> str:
    known = arm.mean(lambda one: one.prompt_tokens.known + one.output_tokens.known) or 0.0
    unknown = any(one.prompt_tokens.unknown or one.output_tokens.unknown for one in arm.metrics)
    return f"{known:,.0f}{'+?' if unknown else ''}"


def _questions(arm: Arm) -> str:
    return ", ".join(dict.fromkeys(str(one.questions) for one in arm.metrics))


def _interval(arm: Arm) -> str:
    found = arm.interval.interval if arm.interval else None
    return ABSENT if found is None else str(Interval(low=found[0], high=found[1]))


def _count(value: float) -> str:
    return f"{value:,.0f}" if abs(value - round(value)) < 0.05 else f"{value:,.1f}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
