"""Which runs a report takes together, which it refuses, and what it says of the rest."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from merit_sql.domain.errors import DataError, IdentityError
from merit_sql.eval.report.figures import arms_of, part_of
from merit_sql.eval.report.reading import open_run
from merit_sql.eval.report.sources import Source, combine

MakeRun = Callable[..., Path]


def combined(*folders: Path, labelled: bool = False) -> tuple[Source, ...]:
    return combine([open_run(folder) for folder in folders], labelled=labelled)


def test_runs_that_differ_in_methods_and_orders_are_one(make_run: MakeRun, tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", methods=("iterative",), orders=(0,))
    two = make_run(tmp_path / "two", methods=("merit",), orders=(0, 1, 2))
    (source,) = combined(one, two)
    assert source.label == ""
    assert source.names == ("one", "two")
    assert [(stream.method, stream.order) for stream in source.streams] == [
        ("iterative", 0),
        ("merit", 0),
        ("merit", 1),
        ("merit", 2),
    ]
    assert source.missing == (("iterative", 1), ("iterative", 2))


def test_the_same_run_twice_is_one(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    (source,) = combined(folder, folder)
    assert [len(stream.records) for stream in source.streams] == [12, 12]
    assert source.names == ("run",)


def test_of_a_stream_in_two_runs_the_one_that_came_further_counts(make_run: MakeRun, tmp_path: Path) -> None:
    short = make_run(tmp_path / "short", methods=("merit",), finished={("merit", 0): 5})
    whole = make_run(tmp_path / "whole", methods=("merit",))
    for folders in ((short, whole), (whole, short)):
        (source,) = combined(*folders)
        assert [len(stream.records) for stream in source.streams] == [12]


def test_two_runs_that_tell_one_stream_differently_are_refused(make_run: MakeRun, tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", methods=("merit",))
    two = make_run(tmp_path / "two", methods=("merit",), right_at=lambda *_: None)
    with pytest.raises(DataError, match="both hold merit, order 0, with other episodes"):
        combined(one, two)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"budget": 3}, "budget: 2 and 3"),
        ({"model": {"kind": "scripted", "model": "big"}}, 'model.model: "small" and "big"'),
        ({"scoring": {"suite": "bird", "dataset": "d1"}}, 'scoring.suite: "spider" and "bird"'),
        ({"encoder": {"id": "other", "revision": "1"}}, 'encoder.id: "hashing" and "other"'),
        ({"methods": {"merit": {"name": "merit", "policy": None}}}, "methods.merit.policy"),
        (
            {"prompts": {"budget": 4096, "templates": {"cached": {"repair": "bb"}}}},
            'prompts.templates.cached.repair: "aa" and "bb"',
        ),
        ({"regime": "dbms_only"}, "regime"),
    ],
)
def test_another_identity_is_refused_with_its_fields(
    make_run: MakeRun, tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    one = make_run(tmp_path / "one", methods=("merit",))
    two = make_run(tmp_path / "two", methods=("merit",), identity=change)
    with pytest.raises(IdentityError) as refused:
        combined(one, two)
    assert named in str(refused.value)
    assert "--labelled" in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        {"encoder": None},
        {"prompts": {"budget": 4096, "templates": {"paper": {"repair": "bb"}}}},
        {"methods": {"iterative": {"name": "iterative", "policy": None}}},
    ],
)
def test_what_only_one_run_needs_keeps_nothing_apart(
    make_run: MakeRun, tmp_path: Path, change: dict[str, Any]
) -> None:
    one = make_run(tmp_path / "one", methods=("merit",))
    two = make_run(tmp_path / "two", methods=("iterative",), identity=change)
    (source,) = combined(one, two)
    assert source.identity["encoder"] == {"id": "hashing", "revision": "1"}
    assert {"cached"} <= set(source.identity["prompts"]["templates"])


def test_a_third_run_is_held_to_what_the_first_two_brought(make_run: MakeRun, tmp_path: Path) -> None:
    paper = {"prompts": {"budget": 4096, "templates": {"paper": {"repair": "bb"}}}}
    other = {"prompts": {"budget": 4096, "templates": {"paper": {"repair": "cc"}}}}
    folders = [
        make_run(tmp_path / "one", methods=("merit",)),
        make_run(tmp_path / "two", methods=("iterative",), identity=paper),
        make_run(tmp_path / "three", methods=("reflexion",), identity=other),
    ]
    with pytest.raises(IdentityError, match=r"templates\.paper\.repair"):
        combined(*folders)


def test_equal_settings_with_other_initial_predictions_are_refused(make_run: MakeRun, tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", methods=("iterative",))
    two = make_run(tmp_path / "two", methods=("merit",))
    ledger = two / "merit-0/episodes.jsonl"
    ledger.write_text(ledger.read_text().replace("SELECT name, c0 FROM t5 ", "SELECT name FROM t5 "))
    with pytest.raises(IdentityError, match="initial prediction of question 5"):
        combined(one, two)


def test_other_questions_are_refused(make_run: MakeRun, tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", questions=12)
    two = make_run(tmp_path / "two", questions=13)
    with pytest.raises(IdentityError, match="12 questions"):
        combined(one, two)


def test_labelled_runs_stand_apart_and_say_what_differs(make_run: MakeRun, tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", methods=("merit",))
    two = make_run(tmp_path / "two", methods=("merit",), identity={"budget": 3})
    three = make_run(tmp_path / "three", methods=("iterative",))
    first, second = combined(one, two, three, labelled=True)
    assert (first.label, first.names) == ("A", ("one", "three"))
    assert (second.label, second.names) == ("B", ("two",))
    assert first.differing == {"budget": 2}
    assert second.differing == {"budget": 3}
    assert [arm.name for arm in arms_of(first)] == ["iterative · A", "merit · A"]
    part = part_of(second, "merit")
    assert part.comparisons == ()


def test_finished_streams_alone_make_a_methods_figures(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run(
        tmp_path / "run",
        methods=("iterative", "merit"),
        orders=(0, 1),
        finished={("iterative", 0): 7, ("merit", 0): 12, ("merit", 1): 4},
    )
    iterative, merit = arms_of(combined(folder)[0])
    assert (iterative.partial, iterative.orders) == (True, (0,))
    assert (merit.partial, merit.orders) == (False, (0,))
    assert [(stream.order, len(stream.records)) for stream in merit.left_out] == [(1, 4)]
    comparison = part_of(combined(folder)[0], "merit").comparisons[0]
    assert comparison.questions == 7


def remove(name: str) -> Callable[[Path], None]:
    return lambda run: (run / name).unlink()


def put(name: str, content: str) -> Callable[[Path], object]:
    return lambda run: (run / name).write_text(content)


def swap(name: str, old: str, new: str) -> Callable[[Path], object]:
    def change(run: Path) -> None:
        before = (run / name).read_text()
        assert old in before
        (run / name).write_text(before.replace(old, new))

    return change


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (remove("manifest.json"), "manifest.json"),
        (remove("questions.jsonl"), "questions.jsonl"),
        (remove("schemas.json"), "schemas.json"),
        (remove("initial.jsonl"), "initial.jsonl"),
        (put("manifest.json", '{"format": 1, "run": "x", "identity": {}}'), "manifest.json"),
        (
            put("manifest.json", '{"format": 1, "run": "x", "identity": {"methods": [], "orders": 1}}'),
            "methods",
        ),
        (put("manifest.json", "{"), "manifest.json"),
        (put("schemas.json", "[]"), "schemas.json"),
        (swap("questions.jsonl", '"things of 3"', "3"), "questions.jsonl"),
        (swap("questions.jsonl", '"id": 3,', ""), "questions.jsonl"),
        (swap("merit-0/episodes.jsonl", '"strict": 0, ', ""), "episodes.jsonl:1"),
        (swap("merit-0/episodes.jsonl", '"attempts": [', '"attempts": [7, '), "episodes.jsonl:1"),
        (swap("merit-0/episodes.jsonl", '"sql": "SELECT', '"sql": 5, "x": "SELECT'), "episodes.jsonl:1"),
        (swap("merit-0/episodes.jsonl", '"position": 5', '"position": 6'), "episodes.jsonl:6"),
        (swap("merit-0/episodes.jsonl", '"query_id": "3"', '"query_id": "99"'), "99"),
    ],
)
def test_what_is_missing_or_damaged_is_a_data_error_that_names_the_file(
    make_run: MakeRun, tmp_path: Path, damage: Callable[[Path], object], said: str
) -> None:
    run = make_run(tmp_path / "run")
    damage(run)
    with pytest.raises(DataError) as refused:
        combined(run)
    assert said in str(refused.value)


def test_a_ledger_that_is_a_folder_is_a_data_error(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    (run / "merit-0/episodes.jsonl").unlink()
    (run / "merit-0/episodes.jsonl").mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        combined(run)


def test_a_run_without_a_finished_episode_has_nothing_to_report(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", finished={})
    with pytest.raises(DataError, match="no episode is finished"):
        combined(run)


def test_a_torn_last_line_is_an_episode_that_is_not_there_yet(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    ledger = run / "merit-0/episodes.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-40])
    (source,) = combined(run)
    assert [len(stream.records) for stream in source.streams] == [12, 11]
    assert json.loads((run / "manifest.json").read_text())["run"] == source.run
