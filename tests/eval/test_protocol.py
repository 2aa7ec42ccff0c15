"""Protocols: what ships, what a file may say, what is refused and how."""

from pathlib import Path

import pytest

from merit_sql.domain.errors import DataError
from merit_sql.domain.status import Regime
from merit_sql.eval.protocol import bundled, read_protocol, resolve
from merit_sql.graph.method import METHODS
from merit_sql.stores.texts import MemoryText

SMALL = {"suite": "mini", "methods": ["merit"]}


@pytest.mark.parametrize("name", ["paper-spider", "paper-bird"])
def test_the_papers_protocols_are_those_of_the_method(name: str) -> None:
    protocol = resolve(read_protocol(name), name)
    # The initial prediction is judged in every method, so that zero_shot needs no stream of its own.
    assert set(protocol.methods) == set(list(METHODS)[1:12])
    assert (protocol.orders, protocol.budget, protocol.regime) == ((0, 1, 2), 7, Regime.DENOTATION_CONFIRMED)
    assert (protocol.prompts, protocol.memory_text) == ("paper", MemoryText.PAPER)
    assert protocol.tokens.model_dump() == {"prompt": 4096, "reply": 512, "reflection": 512}
    assert protocol.model.name.endswith("Qwen/Qwen2.5-7B-Instruct")
    assert protocol.model.revision == "a09a3545"
    assert protocol.encoder.revision == "d4aa6901d3a41ba39fb536a557fa166f842b0e09"
    assert protocol.suite == name.removeprefix("paper-")


def test_every_bundled_protocol_is_whole() -> None:
    assert {"mini", "paper-bird", "paper-spider"} <= set(bundled())
    for name in bundled():
        assert resolve(read_protocol(name), name).name == name


def test_a_file_is_read_and_what_it_leaves_out_has_the_commands_defaults(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('suite = "bird"\nmethods = ["merit", "iterative", "merit"]\norders = [2, 2]\n')
    protocol = resolve(read_protocol(str(path)), str(path))
    assert (protocol.methods, protocol.orders) == (("merit", "iterative"), (2,))
    assert (protocol.budget, protocol.initial, protocol.prompts) == (7, "generate", "cached")
    assert (protocol.databases, protocol.limit, protocol.memory_text) == (None, None, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"suite": "wikisql"}, "suite: "),
        ({"methods": []}, "methods: "),
        ({"methods": ["merit", "magic"]}, "methods: no method is called magic; there are: zero_shot"),
        ({"orders": [-1]}, "orders: "),
        ({"orders": ["0"]}, r"orders\.0: "),
        ({"budget": -1}, "budget: "),
        ({"budget": "7"}, "budget: "),
        ({"limit": 0}, "limit: "),
        ({"timeout": float("inf")}, "timeout: "),
        ({"prompts": "mine"}, "prompts: no prompt family is called 'mine'; there are: cached, paper"),
        ({"memory_text": "long"}, "memory_text: "),
        ({"regime": "none"}, "regime: "),
        ({"tokens": {"prompt": 0}}, r"tokens\.prompt: "),
        ({"tokens": {"answer": 1}}, r"tokens\.answer: "),
        ({"model": {"revision": 3}}, r"model\.revision: "),
        ({"metod": "merit"}, "metod: "),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, object], said: str) -> None:
    with pytest.raises(DataError, match=f"^here: {said}"):
        resolve({**SMALL, **change}, "here")


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(DataError, match=r"methods: .*; budget: .*; typo: "):
        resolve({"suite": "mini", "methods": ["magic"], "budget": -1, "typo": 1}, "here")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("nothing", None, "there is no protocol 'nothing'; there are demo, mini, paper-bird, paper-spider"),
        ("absent.toml", None, "absent.toml"),
        ("broken.toml", b"suite = ", "is no TOML text"),
        ("latin.toml", b'suite = "\xff"', "cannot be read"),
        ("a\0b.toml", None, "cannot be read"),
    ],
)
def test_a_protocol_that_cannot_be_read_is_an_error(
    tmp_path: Path, name: str, text: bytes | None, said: str
) -> None:
    path = name
    if name.endswith(".toml"):
        path = f"{tmp_path}/{name}"
        if text is not None:
            Path(path).write_bytes(text)
    with pytest.raises(DataError, match=said):
        read_protocol(path)
