"""Where a stream gains: its figures by step, failure type, difficulty, database, and along the stream."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from merit_sql.domain.episode import EpisodeRecord
from merit_sql.domain.memory import Observation
from merit_sql.domain.status import Polarity
from merit_sql.eval.datasets import Question

RIGHT = "Accepted"
"""Stands in `type_flow` for an attempt that was not refuted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The questions that share something: how many, right at first, right at last."""

    name: str
    questions: int
    initially_right: int
    finally_right: int

    @property
    def initially_wrong(self) -> int:
        """Questions that a repair could win."""
        return self.questions - self.initially_right

    @property
    def repaired(self) -> int:
        """Initially wrong and finally right; none is lost again, since a right attempt ends its episode."""
        return self.finally_right - self.initially_right


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The memory after an episode: observations of either polarity, and how often entries were shown."""

    positives: int
    negatives: int
    shown: int


def right(record: EpisodeRecord, step: int | None = None) -> bool:
    """Whether an episode's last attempt was strictly right, or that after at most `step` revisions."""
    attempts = record.attempts if step is None else record.attempts[: step + 1]
    return attempts[-1]["strict"] == 1


def initial_type(record: EpisodeRecord) -> str | None:
    """The failure type of the initial prediction; None where it was right, or ran and nobody judged it."""
    failure = record.attempts[0]["failure"]
    return None if failure is None else failure["type"]


def grouped(records: Sequence[EpisodeRecord], name: Callable[[EpisodeRecord], str | None]) -> list[Group]:
    """One group a name, in order of first appearance; records whose name is None are in none."""
    members: dict[str, list[EpisodeRecord]] = {}
    for record in records:
        key = name(record)
        if key is not None:
            members.setdefault(key, []).append(record)
    return [
        Group(
            name=key,
            questions=len(group),
            initially_right=sum(right(one, 0) for one in group),
            finally_right=sum(right(one) for one in group),
        )
        for key, group in members.items()
    ]


def by_failure_type(records: Sequence[EpisodeRecord]) -> list[Group]:
    """By the type of the initial failure; questions that were right at first are in no group."""
    return grouped(records, initial_type)


def by_database(records: Sequence[EpisodeRecord]) -> list[Group]:
    """By database."""
    return sorted(grouped(records, lambda record: record.database_id), key=lambda group: group.name)


def by_difficulty(records: Sequence[EpisodeRecord], questions: Mapping[str, Question]) -> list[Group]:
    """By the suite's own difficulty or hardness; `questions` by query id."""
    return grouped(records, lambda record: questions[record.query_id].difficulty)


def success_by_step(records: Sequence[EpisodeRecord], budget: int) -> list[float]:
    """Share of all questions right after at most k revisions, for k = 0 … `budget`; empty without records."""
    return (
        [sum(right(one, k) for one in records) / len(records) for k in range(budget + 1)] if records else []
    )


def learning_curve(records: Sequence[EpisodeRecord]) -> list[tuple[int, int]]:
    """After each episode in stream order: initially wrong questions so far, and those repaired so far."""
    curve: list[tuple[int, int]] = []
    wrong = repaired = 0
    for record in records:
        if not right(record, 0):
            wrong += 1
            repaired += right(record)
        curve.append((wrong, repaired))
    return curve


def type_flow(records: Sequence[EpisodeRecord]) -> dict[tuple[str, str], int]:
    """How often an attempt of one failure type was followed by one of another, or by `RIGHT`."""
    flow: dict[tuple[str, str], int] = {}
    for record in records:
        kinds = [
            RIGHT if attempt["failure"] is None else attempt["failure"]["type"] for attempt in record.attempts
        ]
        for pair in itertools.pairwise(kinds):
            flow[pair] = flow.get(pair, 0) + 1
    return flow


def memory_growth(
    records: Sequence[EpisodeRecord], observations: Sequence[Observation | None]
) -> list[Memory]:
    """The memory after each episode of a stream."""
    growth: list[Memory] = []
    positives = negatives = shown = 0
    for record, observation in zip(records, observations, strict=True):
        shown += sum(len(attempt["memory_ids"]) for attempt in record.attempts)
        if observation is not None:
            positives += observation.provenance.polarity is Polarity.POSITIVE
            negatives += observation.provenance.polarity is Polarity.NEGATIVE
        growth.append(Memory(positives=positives, negatives=negatives, shown=shown))
    return growth
