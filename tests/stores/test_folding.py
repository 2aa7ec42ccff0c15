"""Folds, worked out by hand."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from merit_sql.domain.memory import Observation
from merit_sql.domain.status import Polarity
from merit_sql.stores.folding import entry_of, fold, winning_polarity

Observe = Callable[..., Observation]
SIGNS = {"+": Polarity.POSITIVE, "-": Polarity.NEGATIVE}


@pytest.mark.parametrize(
    ("history", "winner"),
    [
        ("+", "+"),
        ("-", "-"),
        ("+-", "+"),
        ("-+", "-"),
        ("+--", "-"),
        ("+--+", "-"),
        ("+--++", "+"),
        ("-++--+", "-"),
        ("++---", "-"),
    ],
)
def test_the_larger_count_wins_and_a_tie_keeps_the_old(history: str, winner: str) -> None:
    assert winning_polarity([SIGNS[sign] for sign in history]) is SIGNS[winner]


def test_the_newest_text_of_the_winning_polarity_stands_for_all(observe: Observe) -> None:
    observations = [
        observe(0, question="first"),
        observe(1, question="second"),
        observe(2, question="refuted", polarity=Polarity.NEGATIVE),
    ]
    folded = fold([0, 1, 2], observations)
    assert folded is not None
    entry = entry_of(folded, observations)
    assert (entry.content.question, entry.polarity) == ("second", Polarity.POSITIVE)
    assert (entry.confirmations, entry.successes, entry.failures) == (3, 2, 1)
    assert [one.position for one in entry.observations] == [0, 1, 2]


def test_a_text_is_taken_from_further_back_where_the_newest_has_none(observe: Observe) -> None:
    observations = [observe(0, question="told"), replace(observe(1), content=None)]
    folded = fold([0, 1], observations)
    assert folded is not None and folded.representative == 0


def test_a_polarity_without_a_text_is_not_served(observe: Observe) -> None:
    bare = replace(observe(0), content=None)
    refuted = observe(1, polarity=Polarity.NEGATIVE)
    assert fold([0, 1], [bare, refuted]) is None
    assert fold([], []) is None
