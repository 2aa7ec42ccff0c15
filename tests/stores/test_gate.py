"""The gate's rules one by one, and the assertions on what a retrieval brought back."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from merit_sql.domain.errors import CausalityError
from merit_sql.domain.memory import Applicability, Gate, MemoryEntry, MemoryQuery, Observation
from merit_sql.domain.status import Polarity
from merit_sql.models.hashing import HashingEncoder
from merit_sql.stores.episodic import EpisodicMemory
from merit_sql.stores.folding import entry_of, fold
from merit_sql.stores.gate import RULES, Scope, Vantage, assert_causal, legal
from merit_sql.stores.ranking import RetrievalPolicy

Observe = Callable[..., Observation]


def vantage(*committed: Observation, scope: Scope = Scope.ANY, position: int = 5) -> Vantage:
    return Vantage(
        gate=Gate(query_id="q5", database_id="concert", position=position),
        scope=scope,
        committed={one.provenance.commit_key: one for one in committed},
    )


def entry(*observations: Observation) -> MemoryEntry:
    folded = fold(range(len(observations)), observations)
    assert folded is not None
    return entry_of(folded, observations)


def test_the_four_checks_come_in_their_order_and_then_the_scope() -> None:
    assert [rule.name for rule in RULES] == ["finalized", "other query", "earlier", "own words", "scope"]


@pytest.mark.parametrize(
    ("rule", "position", "query_id", "database_id", "committed", "scope"),
    [
        ("finalized", 4, "q4", "pets", False, Scope.ANY),
        ("other query", 4, "q5", "pets", True, Scope.ANY),
        ("earlier", 5, "q9", "pets", True, Scope.ANY),
        ("earlier", 6, "q9", "pets", True, Scope.ANY),
        ("scope", 4, "q4", "concert", True, Scope.CROSS_DATABASE),
    ],
)
def test_each_rule_turns_its_case_away_and_alone_does(
    observe: Observe,
    rule: str,
    position: int,
    query_id: str,
    database_id: str,
    committed: bool,
    scope: Scope,
) -> None:
    one = observe(position, query_id=query_id, database_id=database_id)
    view = vantage(*([one] if committed else []), scope=scope)
    refused = [each.name for each in RULES if not each.permits(one, view)]
    assert refused == (["finalized", "own words"] if rule == "finalized" else [rule])
    assert legal([0], [one], view) == []
    with pytest.raises(CausalityError, match=entry(one).id):
        assert_causal([entry(one)], view)


def test_what_lies_before_is_legal_from_its_own_database_too(observe: Observe) -> None:
    one = observe(4)
    assert legal([0], [one], vantage(one)) == [0]
    assert_causal([entry(one)], vantage(one))


def test_a_text_that_was_not_committed_is_illegal(observe: Observe) -> None:
    one = observe(4)
    content = one.content
    assert content is not None
    swapped = replace(one, content=replace(content, successful_direction="SELECT gold"))
    assert legal([0], [swapped], vantage(one)) == []
    with pytest.raises(CausalityError, match="text"):
        assert_causal([entry(swapped)], vantage(one))


def test_provenance_that_was_not_committed_is_found_afterwards(observe: Observe) -> None:
    one = observe(4)
    good = entry(one)
    forged = replace(good, observations=(replace(one.provenance, step=7),))
    with pytest.raises(CausalityError, match="not finalized"):
        assert_causal([forged], vantage(one))


def test_one_illegal_observation_spoils_an_entry(observe: Observe) -> None:
    early, late = observe(4), observe(6)
    with pytest.raises(CausalityError, match=r"position 5.*not before"):
        assert_causal([entry(early, late)], vantage(early, late))


@pytest.mark.parametrize(
    ("applicability", "database_id", "served"),
    [
        (Applicability.GLOBAL, "concert", True),
        (Applicability.GLOBAL, "pets", True),
        (Applicability.SAME_DATABASE, "concert", True),
        (Applicability.SAME_DATABASE, "pets", False),
        (Applicability.CROSS_DATABASE, "concert", False),
        (Applicability.CROSS_DATABASE, "pets", True),
    ],
)
def test_applicability_is_relative_to_the_source_database(
    observe: Observe, applicability: Applicability, database_id: str, served: bool
) -> None:
    one = observe(1, database_id=database_id, applicability=applicability)
    assert legal([0], [one], vantage(one)) == ([0] if served else [])
    if not served:
        with pytest.raises(CausalityError, match="applicability"):
            assert_causal([entry(one)], vantage(one))


def test_an_observation_without_text_shares_the_applicability_beside_it(observe: Observe) -> None:
    bare = replace(observe(1, database_id="pets"), content=None)
    told = observe(2, applicability=Applicability.SAME_DATABASE)
    assert legal([0, 1], [bare, told], vantage(bare, told)) == [1]


def test_a_merged_entry_shows_nothing_from_later_on(observe: Observe, ask: MemoryQuery) -> None:
    """The text of position 7 replaces that of position 3 only for those who come after it."""
    with EpisodicMemory.in_memory(HashingEncoder()) as memory:
        memory.commit_all([observe(3, question="old"), observe(7, question="new")])
        seen = [
            [
                (one.entry.content.question, one.entry.confirmations)
                for one in memory.retrieve(
                    ask, Gate(query_id="x", database_id="d", position=position), RetrievalPolicy()
                ).memories
            ]
            for position in (3, 4, 7, 8)
        ]
    assert seen == [[], [("old", 1)], [("old", 1)], [("new", 2)]]


def test_polarity_is_that_of_the_legal_observations_alone(observe: Observe, ask: MemoryQuery) -> None:
    """Positive at 0, refuted at 2 and 4: negative from 5 on, and from 3 on a tie that keeps the old."""
    delta = {"sql_delta": "SELECT 1 => SELECT 2", "error_type": ask.error_type}
    with EpisodicMemory.in_memory(HashingEncoder()) as memory:
        memory.commit_all(
            [
                observe(0, **delta),
                observe(2, polarity=Polarity.NEGATIVE, **delta),
                observe(4, polarity=Polarity.NEGATIVE, **delta),
            ]
        )
        polarities = []
        for position in range(6):
            gate = Gate(query_id="x", database_id="d", position=position)
            polarities += [
                (position, one.entry.polarity, one.entry.successes, one.entry.failures)
                for one in memory.retrieve(ask, gate, RetrievalPolicy()).memories
            ]
    assert polarities == [
        (1, Polarity.POSITIVE, 1, 0),
        (2, Polarity.POSITIVE, 1, 0),
        (3, Polarity.POSITIVE, 1, 1),
        (4, Polarity.POSITIVE, 1, 1),
        (5, Polarity.NEGATIVE, 1, 2),
    ]
