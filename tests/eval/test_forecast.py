"""The forecast: its calls by hand, its prices, and that the command asks nobody."""

from pathlib import Path

import pytest

from merit_sql.app.cli import main
from merit_sql.domain.errors import DataError
from merit_sql.eval.bench import Plan, select
from merit_sql.eval.forecast import Forecast, forecast
from merit_sql.eval.suites.load import load_mini
from merit_sql.graph.method import METHODS

NAMES = ("zero_shot", "iterative", "reflexion", "merit")


def test_calls_follow_from_the_shares_that_are_taken_for_granted() -> None:
    suite = load_mini()
    plan = Plan(methods=tuple(METHODS[name] for name in NAMES), orders=(0, 1, 2), budget=7)
    with suite.catalogue:
        selection = select(suite, None, None)
        rows = {row.name: row for row in forecast(plan, suite, selection)}
    wrong = 110 * 425 / 1034
    assert rows["initial predictions"].calls == 110
    assert rows["zero_shot"].calls == 0
    # 6.082 revisions are 6 in whole calls; a reflection follows each of the 7 failed attempts.
    assert rows["iterative"].calls == pytest.approx(6 * wrong)
    assert rows["reflexion"].calls == pytest.approx((6 + 7) * wrong)
    assert rows["merit"].calls == pytest.approx(3 * 6 * wrong)
    assert rows["iterative"].output_tokens == pytest.approx(40 * 6 * wrong)
    assert rows["merit"].prompt_tokens > 3 * rows["iterative"].prompt_tokens


def test_the_cost_is_per_million_tokens() -> None:
    row = Forecast(name="x", calls=1, prompt_tokens=2_000_000, output_tokens=500_000)
    assert row.cost(0.15, 0.60) == pytest.approx(0.30 + 0.30)


def test_a_dry_run_prints_it_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["bench", "--protocol", "mini", "--questions", "3,17", "--dry-run", "--price", "1,2"]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "2 questions, expected" in shown and "cost" in shown
    assert [line.split()[0] for line in shown.splitlines() if line.strip().startswith("merit ")] == ["merit"]
    assert list(tmp_path.iterdir()) == []


def test_questions_are_chosen_by_id_in_dataset_order() -> None:
    suite = load_mini()
    with suite.catalogue:
        chosen = select(suite, None, None, (17, 3, 3)).questions
        assert [question.id for question in chosen] == [3, 17]
        with pytest.raises(DataError, match="has no question 110; its ids run from 0 to 109"):
            select(suite, None, None, (3, 110))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "--suite is missing"),
        (("--suite", "mini"), "--method is missing"),
        (("--protocol", "mini"), "--out is missing"),
        (("--protocol", "mini", "--questions", "x"), "--questions"),
        (("--protocol", "no.toml"), "no.toml"),
    ],
)
def test_what_is_missing_is_said(
    more: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *more]) == 2
    err = capsys.readouterr().err
    assert err.startswith("merit: ") and said in err
