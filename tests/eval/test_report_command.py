"""``merit report``: where it writes, what it prints, and status 2 with one message for what is wrong."""

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from merit_sql.app.cli import main
from merit_sql.eval.bench import Plan, run_bench
from merit_sql.eval.oracle import Verdicts
from merit_sql.eval.suites.load import load_mini
from merit_sql.graph.method import METHODS
from merit_sql.models.hashing import HashingEncoder
from merit_sql.models.identity import identity
from merit_sql.models.record import RecordedChatModel, ReplyRecord
from merit_sql.models.scripted import ScriptedChatModel

MakeRun = Callable[..., Path]


def test_the_page_lies_in_the_first_run_unless_told_otherwise(make_run: MakeRun, tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", methods=("merit",))
    two = make_run(tmp_path / "two", methods=("iterative",))
    assert main(["report", str(one), str(two)]) == 0
    assert (one / "report.html").read_bytes().startswith(b"<!DOCTYPE html>")
    assert not (two / "report.html").exists()
    assert main(["report", str(one), str(two), "--output", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_bytes() == (one / "report.html").read_bytes()


@pytest.mark.parametrize(
    ("form", "begins"), [("markdown", "### Accuracy"), ("csv", "Accuracy"), ("latex", r"\begin{table}")]
)
def test_tables_go_to_standard_output_or_to_a_file(
    make_run: MakeRun, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], form: str, begins: str
) -> None:
    run = make_run(tmp_path / "run")
    assert main(["report", str(run), "--format", form]) == 0
    printed = capfdbinary.readouterr().out
    assert printed.decode().startswith(begins)
    assert main(["report", str(run), "--format", form, "--output", str(tmp_path / "tables")]) == 0
    assert (tmp_path / "tables").read_bytes() == printed
    assert not (run / "report.html").exists()


def test_csv_has_the_papers_tables_where_they_are_asked_for(make_run: MakeRun, tmp_path: Path) -> None:
    run, out = make_run(tmp_path / "run"), tmp_path / "t.csv"
    assert main(["report", str(run), "--format", "csv", "--against", "paper", "--output", str(out)]) == 0
    rows = list(csv.reader(io.StringIO(out.read_text())))
    assert ["model", "Qwen/Qwen2.5-7B-Instruct", "small", "DIFFERS"] in rows


def test_another_reference_turns_the_differences_round(make_run: MakeRun, tmp_path: Path) -> None:
    run, out = make_run(tmp_path / "run"), tmp_path / "t.md"
    command = ["report", str(run), "--format", "markdown", "--output", str(out), "--reference", "iterative"]
    assert main(command) == 0
    assert "| iterative − merit | 0 | 12 | -16.67 |" in out.read_text()


def test_runs_of_other_settings_need_labelled(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        str(make_run(tmp_path / "one")),
        str(make_run(tmp_path / "two", identity={"model": {"kind": "scripted", "model": "big"}})),
    ]
    assert main(["report", *runs]) == 2
    assert 'model.model: "small" and "big"' in capsys.readouterr().err
    assert not (tmp_path / "one/report.html").exists()
    assert main(["report", *runs, "--labelled"]) == 0
    html = (tmp_path / "one/report.html").read_text()
    assert "merit · A" in html and "merit · B" in html


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--reference", "nonsense"), "nonsense"),
        (("--output", "no-such-folder/x.html"), "no-such-folder"),
        (("--output", "."), "--output ."),
    ],
)
def test_what_is_wrong_is_said_in_one_message_with_status_2(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], said: str
) -> None:
    assert main(["report", str(make_run(tmp_path / "run")), *more]) == 2
    message = capsys.readouterr().err
    assert said in message and message.count("\n") == 1


@pytest.mark.parametrize("name", ["manifest.json", "merit-0/episodes.jsonl"])
def test_a_report_never_overwrites_its_run(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    run = make_run(tmp_path / "run")
    before = (run / name).read_bytes()
    assert main(["report", str(run), "--output", str(run / name)]) == 2
    assert "would overwrite" in capsys.readouterr().err
    assert (run / name).read_bytes() == before


def test_a_folder_without_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "holds no run" in capsys.readouterr().err


def reply(prompt: str) -> str:
    """A reflection where one is asked for, and else always the same wrong answer."""
    if "<reflection>" in prompt:
        return "<reflection>Look at the <b>tables</b> again.</reflection>"
    return "<answer>SELECT n FROM nowhere</answer>"


def test_a_real_run_of_the_bundled_suite_is_reported_with_its_reflections_and_memories(
    tmp_path: Path,
) -> None:
    model, record = ScriptedChatModel(replies=reply), ReplyRecord(tmp_path / "replies.sqlite")
    with (suite := load_mini()).catalogue:
        run_bench(
            plan=Plan(methods=(METHODS["reflexion"], METHODS["merit"]), limit=5, budget=2),
            suite=suite,
            model=RecordedChatModel(inner=model, records=[record], identity=identity(model)),
            encoder=HashingEncoder,
            verdicts=Verdicts(own=record),
            out=tmp_path,
        )
    record.close()
    assert main(["report", str(tmp_path), "--against", "paper"]) == 0
    html = (tmp_path / "report.html").read_text()
    chunks = re.findall(r'<script type="application/json" id="chunk-\d+">(.*?)</script>', html)
    episodes = [episode for chunk in chunks for episode in json.loads(chunk)["e"].values()]
    texts = {text for chunk in chunks for text in json.loads(chunk)["s"]}
    # Two methods on five questions; a reflection after each of three attempts; a negative each for merit.
    assert len(episodes) == 10
    assert sum(len(episode["r"]) for episode in episodes) == 15
    assert sum(episode["k"] is not None for episode in episodes) == 5
    assert "Look at the <b>tables</b> again." in texts
    assert any("m" in attempt for episode in episodes for attempt in episode["a"])


def test_a_report_loads_neither_torch_nor_chroma() -> None:
    script = (
        "import sys, merit_sql.eval.report.page, merit_sql.eval.report.reading; "
        "sys.exit(bool({'torch', 'chromadb'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
