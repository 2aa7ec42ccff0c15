"""``merit bench`` on the bundled suite, answered from a record that a scripted model filled."""

import json
import re
from pathlib import Path

import pytest

from merit_sql.app.cli import main
from merit_sql.domain.encoder import Encoder
from merit_sql.eval.bench import Plan, run_bench
from merit_sql.eval.oracle import Verdicts
from merit_sql.eval.suites import mini_questions
from merit_sql.eval.suites.load import load_mini
from merit_sql.graph.method import METHODS
from merit_sql.models.identity import identity
from merit_sql.models.record import RecordedChatModel, ReplyRecord
from merit_sql.models.scripted import ScriptedChatModel

RIGHT = {item["question"]: item["query"] for item in mini_questions()[:2]}


def reply(prompt: str) -> str:
    """Right at once on question 0, right at the first revision of question 1, and never else."""
    first, second = RIGHT
    if f"\n{first}\n" in prompt or (f"\n{second}\n" in prompt and "Attempt 0" in prompt):
        return f"<answer>{RIGHT[first if first in prompt else second]}</answer>"
    return "<answer>SELECT 1 AS wrong</answer>"


def no_encoder() -> Encoder:
    raise AssertionError("no method of this run remembers")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of 4 questions with K = 2."""
    out = tmp_path_factory.mktemp("recorded")
    model = ScriptedChatModel(replies=reply)
    record = ReplyRecord(out / "replies.sqlite")
    with (suite := load_mini()).catalogue:
        run_bench(
            plan=Plan(methods=(METHODS["iterative"],), limit=4, budget=2),
            suite=suite,
            model=RecordedChatModel(inner=model, records=[record], identity=identity(model)),
            encoder=no_encoder,
            verdicts=Verdicts(own=record),
            out=out,
        )
    record.close()
    return out


def command(recorded: Path, out: Path, *more: str) -> list[str]:
    model = f"replay:{recorded / 'replies.sqlite'}"
    return [
        *("bench", "--suite", "mini", "--limit", "4", "--budget", "2", "--method", "iterative"),
        *("--model", model, "--out", str(out), *more),
    ]


def test_a_replayed_run_prints_its_table_and_repeats_its_ledger(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(recorded, tmp_path / "run")) == 0
    shown = capsys.readouterr().out
    row = next(line for line in shown.splitlines() if re.match(r" *iterative +0 ", line))
    cells = row.split()
    # 2 of 4 right, one of 3 wrong ones repaired; 1 + 2 + 2 revisions; two episodes repeat themselves.
    assert cells[:9] == ["iterative", "0", "50.00", "50.00", "1", "3", "1.667", "50.00", "66.67"]
    assert cells[9] == str(4 + 5)
    ledger = "iterative-0/episodes.jsonl"
    assert (tmp_path / "run" / ledger).read_bytes() == (recorded / ledger).read_bytes()


def test_given_predictions_are_aligned_to_the_whole_suite_and_cost_no_call(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = mini_questions()
    lines = [item["query"] if item["id"] < 3 else "SELECT 1 AS wrong" for item in questions]
    predictions = tmp_path / "initial.sql"
    predictions.write_text("\n".join(lines) + "\n")
    more = ("--initial", str(predictions), "--limit", "3")
    assert main(command(recorded, tmp_path / "run", *more)) == 0
    shown = capsys.readouterr().out
    assert "cost 0 calls" in shown
    row = next(line for line in shown.splitlines() if re.match(r" *iterative +0 ", line))
    assert "0+?" in row
    record = json.loads((tmp_path / "run/iterative-0/episodes.jsonl").read_text().splitlines()[0])
    assert record["record"]["attempts"][0]["usage"] is None


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--method", "merit,nonsense"), "nonsense"),
        (("--orders", "0,x"), "--orders"),
        (("--databases", "nowhere"), "nowhere"),
        (("--budget", "-1"), "-1"),
        (("--limit", "0"), "--limit"),
        (("--model", "embedded:gpt-9"), "gpt-9"),
        (("--suite", "spider", "--data", "no-such-folder"), "no-such-folder"),
        (("--initial", "no-such-file.sql"), "no-such-file.sql"),
        (("--replies", "no-such-record.sqlite"), "no-such-record.sqlite"),
    ],
)
def test_what_is_wrong_is_said_in_one_message_with_status_2(
    recorded: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    more: tuple[str, ...],
    said: str,
) -> None:
    status = main(command(recorded, tmp_path / "run", *more))
    err = capsys.readouterr().err
    assert status == 2
    assert err.startswith("merit: ") and said in err and "Traceback" not in err
    assert not list(tmp_path.glob("run/*/episodes.jsonl"))


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_a_timeout_that_is_no_time_is_a_usage_error(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], seconds: str
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(command(recorded, tmp_path / "run", f"--timeout={seconds}"))
    assert stop.value.code == 2
    assert "--timeout" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_an_out_that_cannot_be_a_folder_is_said_in_one_line(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("kept")
    for out in (tmp_path / "file", tmp_path / "file" / "run"):
        assert main(command(recorded, out)) == 2
        err = capsys.readouterr().err
        assert err.startswith("merit: --out ") and err.count("\n") == 1
    assert (tmp_path / "file").read_text() == "kept"


def test_a_prompt_that_was_not_recorded_ends_a_replay_with_an_error(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(recorded, tmp_path / "run", "--limit", "5")) == 2
    assert "no reply to this prompt is recorded" in capsys.readouterr().err
