"""What every store does, wherever it keeps things."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from merit_sql.domain.errors import DataError, ModelError
from merit_sql.domain.memory import Gate, MemoryQuery, MemoryStore, Observation
from merit_sql.domain.status import Polarity
from merit_sql.models.hashing import HashingEncoder
from merit_sql.stores.derived import Derived
from merit_sql.stores.episodic import EpisodicMemory
from merit_sql.stores.journal import StoreError
from merit_sql.stores.ranking import RetrievalPolicy

Observe: TypeAlias = Callable[..., Observation]
GateAt: TypeAlias = Callable[..., Gate]

STORES: dict[str, Callable[[Path], AbstractContextManager[EpisodicMemory]]] = {
    "in memory": lambda folder: EpisodicMemory.in_memory(HashingEncoder()),
    "on disk": lambda folder: EpisodicMemory.open(folder / "memory", HashingEncoder()),
}


@pytest.fixture(params=STORES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EpisodicMemory]:
    with STORES[request.param](tmp_path) as store:
        yield store


def mixed(observe: Observe) -> list[Observation]:
    return [
        observe(0),
        observe(1, sql_delta="SELECT 0 => SELECT 5"),
        observe(2, polarity=Polarity.NEGATIVE),
        observe(3),
        observe(4, question="Pets?", sql_delta="a => b"),
        observe(5, question="Ages?", sql_delta="c => d"),
    ]


def test_it_is_a_memory_store(memory: EpisodicMemory) -> None:
    store: MemoryStore[RetrievalPolicy] = memory
    assert store.next_position() == 0


def test_an_empty_one_serves_nothing(memory: EpisodicMemory, ask: MemoryQuery, gate_at: GateAt) -> None:
    assert memory.retrieve(ask, gate_at(100), RetrievalPolicy()).ids == []


def test_positives_come_first_three_at_most_and_one_negative(
    memory: EpisodicMemory, observe: Observe, ask: MemoryQuery, gate_at: GateAt
) -> None:
    for one in mixed(observe):
        memory.commit(one)
    memory.commit(observe(6, polarity=Polarity.NEGATIVE, sql_delta="e => f"))
    served = memory.retrieve(ask, gate_at(7), RetrievalPolicy()).memories
    assert [one.entry.polarity.value for one in served] == ["positive"] * 3 + ["negative"]
    assert memory.next_position() == 7


def test_the_same_commit_key_twice_changes_nothing(memory: EpisodicMemory, observe: Observe) -> None:
    memory.commit(observe(4))
    digest = memory.digest()
    memory.commit(observe(4))
    memory.commit(observe(4, sql_delta="another => text"))
    assert memory.commit_all([observe(4), observe(4)]) == 0
    assert (memory.digest(), len(memory.observations)) == (digest, 1)


def test_the_key_is_run_query_and_position_together(memory: EpisodicMemory, observe: Observe) -> None:
    first = observe(4)
    others = [observe(4, run="other"), observe(4, query_id="other"), observe(5, query_id="q4")]
    assert memory.commit_all([first, *others]) == 4


def test_the_digest_says_what_was_committed_and_in_which_order(tmp_path: Path, observe: Observe) -> None:
    digests: dict[str, list[str]] = {}
    for name, make in STORES.items():
        for index, order in enumerate(((0, 1), (1, 0))):
            with make(tmp_path / f"{name}{index}") as memory:
                states = [memory.digest()]
                for position in order:
                    memory.commit(observe(position))
                    states.append(memory.digest())
                digests.setdefault(name, []).extend(states)
    assert digests["in memory"] == digests["on disk"]
    assert len(set(digests["on disk"])) == 5


@pytest.mark.parametrize("position", [-1, 2**63])
def test_an_impossible_position_is_refused(memory: EpisodicMemory, observe: Observe, position: int) -> None:
    with pytest.raises(DataError, match="position"):
        memory.commit(observe(position))


def test_an_observation_that_contradicts_itself_is_refused_and_leaves_nothing(
    memory: EpisodicMemory, observe: Observe
) -> None:
    good = observe(0)
    elsewhere = replace(good, provenance=replace(good.provenance, database_id="pets"))
    with pytest.raises(DataError, match=r"'concert'.*'pets'"):
        memory.commit(elsewhere)
    with pytest.raises(DataError, match="not the hash"):
        memory.commit_all([good, replace(observe(1), entry_id="0" * 64)])
    assert memory.observations == ()


def test_hostile_text_survives(
    memory: EpisodicMemory, observe: Observe, ask: MemoryQuery, gate_at: GateAt
) -> None:
    texts = ["\x00", "\ud800", "😀 \u2028 \r\n", "'; DROP TABLE embeddings; --", "x" * 50_000, ""]
    for position, text in enumerate(texts):
        memory.commit(
            observe(position, question=text, sql_delta=f"{text} => {position}", query_id=f"{text}?")
        )
    served = memory.retrieve(replace(ask, question="\ud800"), gate_at(99), RetrievalPolicy())
    assert len(served.ids) == 3
    assert [one.content.question for one in memory.observations if one.content] == texts


def test_an_encoder_that_fails_keeps_nothing(observe: Observe, tmp_path: Path) -> None:
    class Broken(HashingEncoder):
        def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return HashingEncoder().encode(["one", "two"])

    with EpisodicMemory.open(tmp_path, Broken()) as memory:
        with pytest.raises(ModelError, match="shape"):
            memory.commit(observe(0))
        assert memory.observations == ()
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        assert memory.next_position() == 0


def test_a_closed_one_says_so(
    memory: EpisodicMemory, observe: Observe, ask: MemoryQuery, gate_at: GateAt
) -> None:
    memory.close()
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        memory.commit(observe(0))
    with pytest.raises(StoreError, match="closed"):
        memory.retrieve(ask, gate_at(0), RetrievalPolicy())


def test_an_interrupted_commit_is_not_built_upon(
    memory: EpisodicMemory, observe: Observe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: Derived, row: int, vector: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Derived, "append", interrupt)
        with pytest.raises(KeyboardInterrupt):
            memory.commit(observe(0))
    with pytest.raises(StoreError, match="interrupted"):
        memory.commit(observe(1))
