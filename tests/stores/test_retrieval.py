"""Retrieval against a plain implementation of method.md that shares no code with the product."""

import hashlib
import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from merit_sql.domain.errors import IdentityError
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.memory import Gate, MemoryQuery, Observation, Provenance, Transition
from merit_sql.domain.status import Polarity, Regime, Status
from merit_sql.models.hashing import HashingEncoder
from merit_sql.stores.episodic import EpisodicMemory
from merit_sql.stores.gate import Scope
from merit_sql.stores.lexical import LexicalIndex
from merit_sql.stores.ranking import (
    POSITIVES_ONLY,
    SEPARATE_POOLS,
    TYPE_BONUS,
    UNTYPED_POOL,
    RetrievalPolicy,
    TypeFilter,
)
from merit_sql.stores.texts import MemoryText

ENCODER = HashingEncoder(dimension=6)

VARIANTS = {
    "merit": RetrievalPolicy(),
    "paper text": RetrievalPolicy(memory_text=MemoryText.PAPER),
    "merit_type_reliability": RetrievalPolicy(type_filter=TypeFilter.RELIABLE, type_bonus=TYPE_BONUS),
    "dynamic_rag": RetrievalPolicy(pools=UNTYPED_POOL, type_filter=TypeFilter.NEVER),
    "positive_only": RetrievalPolicy(pools=POSITIVES_ONLY),
    "no_type_filter": RetrievalPolicy(type_filter=TypeFilter.NEVER),
    "no_dense": RetrievalPolicy(dense_weight=0.0),
    "no_bm25": RetrievalPolicy(lexical_weight=0.0),
    "random_same_type": RetrievalPolicy(shuffle_order=0).for_order(2),
    "cross_database_only": RetrievalPolicy(scope=Scope.CROSS_DATABASE),
}


class FormulaBM25(BM25Okapi):  # type: ignore[misc]  # rank_bm25 has no types
    def _calc_idf(self, nd: dict[str, int]) -> None:
        for word, df in nd.items():
            self.idf[word] = math.log(1 + (self.corpus_size - df + 0.5) / (df + 0.5))


def words(text: str) -> list[str]:
    return re.findall("[a-z0-9_]+", text.lower())


@dataclass
class Plain:
    """One candidate of the reference."""

    id: str
    content: Transition
    polarity: Polarity
    count: int
    successes: int
    dense: float = 0.0
    lexical: float = 0.0
    score: float = 0.0


def reference(
    observations: Sequence[Observation], query: MemoryQuery, gate: Gate, policy: RetrievalPolicy
) -> list[tuple[Any, ...]]:
    """What must be served, as (id, polarity, score, dense, lexical, confirmations, successes)."""
    seen: set[tuple[str, str, int]] = set()
    members: dict[str, list[Observation]] = {}
    for one in observations:
        where = one.provenance
        key = (where.run, where.query_id, where.position)
        if key in seen:
            continue
        seen.add(key)
        if where.position >= gate.position or where.query_id == gate.query_id:
            continue
        if policy.scope is Scope.CROSS_DATABASE and where.database_id == gate.database_id:
            continue
        assert one.content is not None
        members.setdefault(one.content.identity, []).append(one)
    everything = [folded(identity, its) for identity, its in members.items()]
    served: list[Plain] = []
    for pool in policy.pools:
        legal = [one for one in everything if pool.polarity is None or one.polarity is pool.polarity]
        same = [one for one in legal if one.content.error_type is query.error_type]
        reliable = query.error_type.value in ("Syntax", "Schema Linking", "Execution")
        narrows = policy.type_filter is TypeFilter.ALWAYS or (
            policy.type_filter is TypeFilter.RELIABLE and reliable
        )
        chosen = same if narrows and len(same) >= 3 else legal
        if policy.shuffle_order is not None and pool.polarity is not None:
            text = f"{policy.shuffle_order}|{gate.query_id}|{query.step}|{pool.polarity.value}"
            chosen = sorted(chosen, key=lambda one: one.id)
            random.Random(int(hashlib.sha256(text.encode()).hexdigest()[:16], 16)).shuffle(chosen)
        elif chosen:
            score(chosen, query, policy, 0.0 if reliable else policy.type_bonus)
            chosen = sorted(chosen, key=lambda one: order(one, query))
        served += chosen[: pool.limit]
    served = [one for one in served if one.polarity is Polarity.POSITIVE] + [
        one for one in served if one.polarity is Polarity.NEGATIVE
    ]
    return [
        (one.id, one.polarity, one.score, one.dense, one.lexical, one.count, one.successes) for one in served
    ]


def folded(identity: str, its: list[Observation]) -> Plain:
    polarity = its[0].provenance.polarity
    ups = downs = 0
    for one in its:
        if one.provenance.polarity is Polarity.POSITIVE:
            ups += 1
        else:
            downs += 1
        if ups > downs:
            polarity = Polarity.POSITIVE
        elif downs > ups:
            polarity = Polarity.NEGATIVE
    newest = [one.content for one in its if one.provenance.polarity is polarity][-1]
    assert newest is not None
    return Plain(id=identity, content=newest, polarity=polarity, count=len(its), successes=ups)


def order(one: Plain, query: MemoryQuery) -> tuple[Any, ...]:
    other_type = one.content.error_type is not query.error_type
    return (-one.score, -one.dense, -one.lexical, other_type, one.id)


def score(chosen: list[Plain], query: MemoryQuery, policy: RetrievalPolicy, bonus: float) -> None:
    context = f"attempted_sql={query.sql}; status={query.status}; db_error={query.error or '(none)'}"
    asked = f"question: {query.question}\nsql: {query.sql}\nfailure: {context}\ntype: {query.error_type}"
    lexical = FormulaBM25([words(lexical_text(one.content)) for one in chosen]).get_scores(words(asked))
    vector = ENCODER.encode([asked])[0].astype(np.float64)
    paper = policy.memory_text is MemoryText.PAPER
    matrix = ENCODER.encode([dense_text(one.content, paper) for one in chosen]).astype(np.float64)
    by_dense = scaled([float(row @ vector) for row in matrix])
    by_lexical = scaled([float(value) for value in lexical])
    dense_weight, lexical_weight = 0.75, 0.25
    if policy.dense_weight == 0:
        dense_weight, lexical_weight, by_dense = 0.0, 1.0, [0.0] * len(chosen)
    if policy.lexical_weight == 0:
        dense_weight, lexical_weight, by_lexical = 1.0, 0.0, [0.0] * len(chosen)
    for i, one in enumerate(chosen):
        one.dense, one.lexical = by_dense[i], by_lexical[i]
        extra = bonus if one.content.error_type is query.error_type else 0.0
        one.score = round(dense_weight * one.dense + lexical_weight * one.lexical + extra, 12)


def scaled(raw: list[float]) -> list[float]:
    raw = [round(value, 9) for value in raw]
    low, high = min(raw), max(raw)
    return [0.0 if high == low else (value - low) / (high - low) for value in raw]


def context_of(content: Transition) -> str:
    return (
        f"attempted_sql={content.failed_sql}; status={content.status}; "
        f"db_error={content.db_error or '(none)'}"
    )


def dense_text(content: Transition, paper: bool) -> str:
    schema = f"schema: {content.schema}\n" if paper else ""
    return (
        f"question: {content.question}\n{schema}failure: {context_of(content)}\n"
        f"delta: {content.normalized_delta}\ntype: {content.error_type}\noutcome: {content.outcome}\n"
        f"error: {content.db_error or '(none)'}"
    )


def lexical_text(content: Transition) -> str:
    return (
        f"question: {content.question}\nfailure: {context_of(content)}\ndelta: {content.sql_delta}\n"
        f"type: {content.error_type}\noutcome: {content.outcome}\nerror: {content.db_error or '(none)'}\n"
        f"direction: {content.successful_direction}"
    )


PHRASES = st.sampled_from(["count singers", "count the singers", "oldest pet", "pets by age", ""])
QUERIES = st.sampled_from(["select 1", "select name from pet", "select count(*) from singer"])
KINDS = st.sampled_from([FailureKind.SCHEMA_LINKING, FailureKind.RESULT_MISMATCH, FailureKind.UNKNOWN])
DATABASES = st.sampled_from(["pets", "concert"])


@st.composite
def an_observation(draw: st.DrawFn) -> Observation:
    polarity = draw(st.sampled_from(Polarity))
    database = draw(DATABASES)
    after = draw(QUERIES)
    failed = draw(QUERIES)
    content = Transition(
        question=draw(PHRASES),
        schema=f"{database}(id)",
        database_id=database,
        error_type=draw(KINDS),
        failed_sql=failed,
        status=Status.EXECUTION_ERROR,
        db_error=draw(st.sampled_from([None, "no such table: pet"])),
        sql_delta=f"{failed} => {after}",
        outcome=Status.CORRECT if polarity is Polarity.POSITIVE else Status.DENOTATION_MISMATCH,
        successful_direction=after if polarity is Polarity.POSITIVE else "",
    )
    provenance = Provenance(
        run="run",
        method="merit",
        regime=Regime.DENOTATION_CONFIRMED,
        query_id=f"q{draw(st.integers(0, 20))}",
        database_id=database,
        position=draw(st.integers(0, 12)),
        step=3,
        retrieved_ids=(),
        polarity=polarity,
    )
    return Observation.of(provenance, content)


MEMORIES = st.lists(an_observation(), max_size=25)
QUESTIONS = st.builds(
    MemoryQuery,
    question=PHRASES,
    sql=QUERIES,
    status=st.just(Status.EXECUTION_ERROR),
    error=st.sampled_from([None, "no such table: pet"]),
    error_type=KINDS,
    step=st.integers(1, 7),
)
GATES = st.builds(
    Gate,
    query_id=st.sampled_from(["q0", "q1", "another"]),
    database_id=DATABASES,
    position=st.sampled_from([0, 3, 8, 13, 13, 13]),
)


def retrieve(
    observations: Sequence[Observation], query: MemoryQuery, gate: Gate, policy: RetrievalPolicy
) -> list[tuple[Any, ...]]:
    with EpisodicMemory.in_memory(ENCODER, memory_text=policy.memory_text) as memory:
        memory.commit_all(observations)
        served = memory.retrieve(query, gate, policy).memories
    return [
        (
            one.entry.id,
            one.entry.polarity,
            one.score,
            one.dense,
            one.lexical,
            one.entry.confirmations,
            one.entry.successes,
        )
        for one in served
    ]


@pytest.mark.parametrize("name", VARIANTS)
@settings(max_examples=60, deadline=None)
@given(observations=MEMORIES, query=QUESTIONS, gate=GATES)
def test_retrieval_equals_the_plain_implementation(
    name: str, observations: list[Observation], query: MemoryQuery, gate: Gate
) -> None:
    policy = VARIANTS[name]
    assert retrieve(observations, query, gate, policy) == reference(observations, query, gate, policy)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 8, 40, 300])
def test_pools_of_every_size_are_ranked_alike(size: int) -> None:
    generator = random.Random(size)
    observations = [numbered(i, generator) for i in range(size)]
    query = MemoryQuery(
        question="w1 w2 w2 w7",
        sql="select w3",
        status=Status.DENOTATION_MISMATCH,
        error=None,
        error_type=FailureKind.SYNTAX,
    )
    gate = Gate(query_id="asking", database_id="d", position=size)
    policy = replace(RetrievalPolicy(), pools=tuple(replace(pool, limit=size) for pool in SEPARATE_POOLS))
    served = retrieve(observations, query, gate, policy)
    assert served == reference(observations, query, gate, policy)
    assert len(served) == size or size > 5


def numbered(i: int, generator: random.Random) -> Observation:
    some = [f"w{generator.randrange(9)}" for _ in range(generator.randrange(6))]
    positive = generator.random() < 0.6
    content = Transition(
        question=" ".join(some),
        schema="",
        database_id="d",
        error_type=generator.choice([FailureKind.SYNTAX, FailureKind.EXECUTION]),
        failed_sql="select 0",
        status=Status.DENOTATION_MISMATCH,
        db_error=None,
        sql_delta=f"select 0 => select {i}",
        outcome=Status.CORRECT if positive else Status.DENOTATION_MISMATCH,
    )
    provenance = Provenance(
        run="run",
        method="merit",
        regime=Regime.DENOTATION_CONFIRMED,
        query_id=f"q{i}",
        database_id="d",
        position=i,
        step=1,
        retrieved_ids=(),
        polarity=Polarity.POSITIVE if positive else Polarity.NEGATIVE,
    )
    return Observation.of(provenance, content)


@settings(max_examples=100, deadline=None)
@given(past=MEMORIES, future=MEMORIES, query=QUESTIONS, gate=GATES, data=st.data())
def test_nothing_later_and_nothing_of_the_same_query_changes_a_retrieval(
    past: list[Observation],
    future: list[Observation],
    query: MemoryQuery,
    gate: Gate,
    data: st.DataObject,
) -> None:
    unseen = [
        one
        for one in future
        if one.provenance.position >= gate.position or one.provenance.query_id == gate.query_id
    ]
    mixed = data.draw(interleaved(past, unseen))
    with EpisodicMemory.in_memory(ENCODER) as alone, EpisodicMemory.in_memory(ENCODER) as together:
        alone.commit_all(past)
        together.commit_all(mixed)
        assert together.retrieve(query, gate, RetrievalPolicy()) == alone.retrieve(
            query, gate, RetrievalPolicy()
        )


@st.composite
def interleaved(draw: st.DrawFn, first: list[Observation], second: list[Observation]) -> list[Observation]:
    """Both lists in one, each in its own order; of equal commit keys the first list's stays first."""
    keys = {one.provenance.commit_key for one in first}
    second = [one for one in second if one.provenance.commit_key not in keys]
    turns = draw(st.permutations([True] * len(first) + [False] * len(second)))
    left, right = iter(first), iter(second)
    return [next(left) if turn else next(right) for turn in turns]


@settings(max_examples=100, deadline=None)
@given(
    documents=st.lists(st.lists(st.sampled_from("abcdef"), max_size=8), min_size=1, max_size=12),
    query=st.lists(st.sampled_from("abcxyz"), max_size=8),
    data=st.data(),
)
def test_bm25_over_any_subset_has_the_bits_of_the_formula(
    documents: list[list[str]], query: list[str], data: st.DataObject
) -> None:
    index = LexicalIndex()
    for document in documents:
        index.append(document)
    rows = data.draw(st.lists(st.sampled_from(range(len(documents))), min_size=1, unique=True))
    chosen = [documents[row] for row in rows]
    scores = index.scores(query, np.array(rows, dtype=np.int64)).tolist()
    if any(chosen):
        assert scores == FormulaBM25(chosen).get_scores(query).tolist()
    else:
        assert scores == [0.0] * len(rows)


def test_bm25_by_hand() -> None:
    """Two rows of 2 and 4 tokens, N = 2, mean 3; "a" has df 1: IDF = ln(1 + 1.5/1.5) = ln 2."""
    index = LexicalIndex()
    for document in (["a", "b"], ["b", "b", "c", "c"], ["a", "a", "a"]):
        index.append(document)
    first, second = index.scores(["a", "a"], np.array([0, 1]))
    assert first == pytest.approx(2 * math.log(2) * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 2 / 3)))
    assert second == 0.0


def test_a_tie_in_everything_is_broken_by_the_id(observe: Any, ask: MemoryQuery, gate_at: Any) -> None:
    twins = [observe(i, sql_delta=f"select 0 => select {'(' * i}1") for i in range(3)]
    served = retrieve(twins, ask, gate_at(9), RetrievalPolicy())
    assert [one[0] for one in served] == sorted(one.entry_id for one in twins)
    assert {one[2] for one in served} == {0.0}


def test_a_policy_for_another_memory_text_is_refused(ask: MemoryQuery, gate_at: Any) -> None:
    with (
        EpisodicMemory.in_memory(ENCODER) as memory,
        pytest.raises(IdentityError, match=r"'paper'.*'compact'"),
    ):
        memory.retrieve(ask, gate_at(0), RetrievalPolicy(memory_text=MemoryText.PAPER))


@pytest.mark.parametrize(("dense", "lexical"), [(0.0, 0.0), (-1.0, 2.0), (2.0, -1.0)])
def test_weights_that_rank_nothing_are_refused(dense: float, lexical: float) -> None:
    with pytest.raises(ValueError, match="weights"):
        RetrievalPolicy(dense_weight=dense, lexical_weight=lexical)


def test_a_shuffle_of_mixed_polarities_is_refused_and_only_a_shuffle_depends_on_the_order() -> None:
    with pytest.raises(ValueError, match="polarity"):
        RetrievalPolicy(pools=UNTYPED_POOL, shuffle_order=0)
    assert RetrievalPolicy().for_order(2) == RetrievalPolicy()


def test_an_empty_memory_does_not_ask_the_encoder(ask: MemoryQuery, gate_at: Any) -> None:
    class Silent(HashingEncoder):
        def encode(self, texts: Sequence[str]) -> Any:
            raise AssertionError(texts)

    with EpisodicMemory.in_memory(Silent()) as memory:
        assert memory.retrieve(ask, gate_at(5), RetrievalPolicy()).ids == []
