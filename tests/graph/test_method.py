"""The methods are values that differ from merit as method.md says, and in nothing else."""

import dataclasses

import pytest

from merit_sql.app.cli import main
from merit_sql.domain.status import Polarity
from merit_sql.graph.method import METHODS, Method
from merit_sql.stores.gate import Scope
from merit_sql.stores.ranking import Pool, TypeFilter

POSITIVES, NEGATIVES = Polarity.POSITIVE, Polarity.NEGATIVE
MERIT = METHODS["merit"]
PAPER = [
    "zero_shot", "iterative", "reflexion", "dynamic_rag", "merit", "merit_type_reliability", "positive_only",
    "no_type_filter", "no_dense", "no_bm25", "random_same_type", "cross_database_only",
]  # fmt: skip


def test_the_papers_twelve_come_first() -> None:
    assert list(METHODS)[:12] == PAPER
    assert all(name == method.name for name, method in METHODS.items())


def test_merit_is_the_method() -> None:
    policy = MERIT.policy
    assert policy is not None
    assert policy.pools == (Pool(polarity=POSITIVES, limit=3), Pool(polarity=NEGATIVES, limit=1))
    assert (policy.type_filter, policy.minimum_same_type) == (TypeFilter.ALWAYS, 3)
    assert (policy.dense_weight, policy.lexical_weight, policy.type_bonus) == (0.75, 0.25, 0.0)
    assert policy.scope is Scope.ANY
    assert MERIT.kept == {POSITIVES, NEGATIVES}
    assert MERIT.revises and not MERIT.reflects


POLICY_CHANGES: dict[str, dict[str, object]] = {
    "merit_type_reliability": {"type_filter": TypeFilter.RELIABLE, "type_bonus": 0.10},
    "no_type_filter": {"type_filter": TypeFilter.NEVER},
    "no_dense": {"dense_weight": 0.0},
    "no_bm25": {"lexical_weight": 0.0},
    "random_same_type": {"shuffle_order": 0},
    "cross_database_only": {"scope": Scope.CROSS_DATABASE},
    "merit_redraw": {},
    "positive_only": {"pools": (Pool(polarity=POSITIVES, limit=3),)},
    "dynamic_rag": {"pools": (Pool(polarity=None, limit=4),), "type_filter": TypeFilter.NEVER},
}


@pytest.mark.parametrize("name", POLICY_CHANGES)
def test_a_variant_differs_in_its_retrieval_alone(name: str) -> None:
    assert MERIT.policy is not None
    assert METHODS[name].policy == dataclasses.replace(MERIT.policy, **POLICY_CHANGES[name])


def test_who_keeps_negatives_who_reflects_who_revises() -> None:
    def named(condition: object) -> set[str]:
        assert callable(condition)
        return {name for name, method in METHODS.items() if condition(method)}

    without_memory = {"zero_shot", "iterative", "reflexion"}
    assert named(lambda method: not method.remembers) == without_memory
    assert named(lambda method: method.kept == set()) == without_memory
    assert named(lambda method: method.kept == {POSITIVES}) == {"dynamic_rag", "positive_only"}
    assert named(lambda method: method.reflects) == {"reflexion"}
    assert named(lambda method: not method.revises) == {"zero_shot"}
    assert named(lambda method: method.on_repeat.value == "redraw") == {"merit_redraw"}


def test_one_line_a_method_its_name_first_however_narrow(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert main(["methods"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(METHODS)
    shown = dict(zip(METHODS, lines, strict=True))
    assert shown["no_dense"].endswith("[dense_weight=0.0]")
    assert shown["reflexion"].endswith("[kept=none, reflects=True, memory=none]")
    assert shown["cross_database_only"].endswith("[scope=cross_database]")
    assert shown["dynamic_rag"].endswith("[kept=positive, pools=any:4, type_filter=never]")


def test_a_method_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        MERIT.name = "other"  # type: ignore[misc]
    assert isinstance(MERIT, Method)
