"""A full disk ends a run with an error that says so; with space again it goes on to the same bytes."""

import errno
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from merit_sql.app.cli import main
from merit_sql.domain.errors import MeritError
from merit_sql.eval.bench import Plan, RunResult, run_bench
from merit_sql.eval.datasets import Suite
from merit_sql.eval.ledger import append_line
from merit_sql.eval.oracle import Verdicts
from merit_sql.eval.suites import mini_questions
from merit_sql.eval.suites.load import load_mini
from merit_sql.graph.method import METHODS
from merit_sql.models.hashing import HashingEncoder
from merit_sql.models.identity import identity
from merit_sql.models.record import RecordedChatModel, ReplyRecord
from merit_sql.models.scripted import ScriptedChatModel

PLAN = Plan(methods=(METHODS["merit"], METHODS["iterative"]), orders=(0, 1), limit=12, budget=3)
GOLDS = {item["question"]: item["query"] for item in mini_questions()}
KIBIBYTES = (60, 300, 900, 1140, 1380, 1800)


def resize(folder: Path, size: str) -> bool:
    command = ["mount", "-o", f"remount,size={size}", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory whose size a test can change."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("no small file system can be mounted here: that takes root")
    yield folder
    unmount = ["umount", "--lazy", str(folder)]
    subprocess.run(unmount, check=True)


def reply(prompt: str) -> str:
    question = next(text for text in GOLDS if f"<question>\n{text}\n" in prompt)
    tried = prompt.count("\nAttempt ")
    if tried == 2 and len(question) % 2:
        return f"<answer>{GOLDS[question]}</answer>"
    return f"<answer>SELECT n{tried} FROM nowhere</answer>"


def go(suite: Suite, out: Path) -> RunResult:
    out.mkdir(exist_ok=True)
    model = ScriptedChatModel(replies=reply)
    record = ReplyRecord(out / "replies.sqlite")
    try:
        return run_bench(
            plan=PLAN,
            suite=suite,
            model=RecordedChatModel(inner=model, records=[record], identity=identity(model)),
            encoder=HashingEncoder,
            verdicts=Verdicts(own=record),
            out=out,
        )
    finally:
        record.close()


def test_a_run_goes_on_when_there_is_space_again(small: Path, tmp_path: Path) -> None:
    suite = load_mini()
    with suite.catalogue:
        ended = 0
        for size in KIBIBYTES:
            assert resize(small, f"{size}k")
            try:
                go(suite, small / "run")
            except MeritError as error:
                told = str(error)
                assert str(small) in told
            except OSError as error:
                assert error.errno == errno.ENOSPC
            else:
                break
            ended += 1
        assert ended >= 3
        assert resize(small, "200m")
        go(suite, small / "run")
        go(suite, tmp_path / "elsewhere")
    for name in ("merit-0", "merit-1", "iterative-0", "iterative-1"):
        ours, theirs = (root / name / "episodes.jsonl" for root in (small / "run", tmp_path / "elsewhere"))
        assert ours.read_bytes() == theirs.read_bytes()


def test_a_ledger_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    (tmp_path / "episodes.jsonl").symlink_to("/dev/full")
    with pytest.raises(MeritError, match=r"episodes\.jsonl: .*No space left on device.*same command goes on"):
        append_line(tmp_path / "episodes.jsonl", "{}")


def test_the_command_line_says_it_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "here")

    monkeypatch.setattr("merit_sql.app.methods.run", full)
    assert main(["methods"]) == 2
    assert capsys.readouterr().err.startswith("merit: the disk is full (here): make room")
