"""``merit validate-classifier`` from a run to the figures: the sheet is drawn, filled in and scored."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from merit_sql.app.cli import main
from merit_sql.domain.encoder import Encoder
from merit_sql.domain.failure import FailureKind
from merit_sql.eval.bench import Plan, run_bench
from merit_sql.eval.oracle import Verdicts
from merit_sql.eval.suites import mini_questions
from merit_sql.eval.suites.load import load_mini
from merit_sql.graph.method import METHODS
from merit_sql.models.identity import identity
from merit_sql.models.record import RecordedChatModel, ReplyRecord
from merit_sql.models.scripted import ScriptedChatModel

ITEMS = mini_questions()[:8]


def reply(prompt: str) -> str:
    """Right at first on questions 0 and 1, a table that is not there on 2 to 4, another result on 5 to 7."""
    number = next(n for n, item in enumerate(ITEMS) if f"<question>\n{item['question']}\n" in prompt)
    if number < 2:
        return f"<answer>{ITEMS[number]['query']}</answer>"
    return f"<answer>SELECT {'n FROM nowhere' if number < 5 else '1 AS other'}</answer>"


def no_encoder() -> Encoder:
    raise AssertionError("no method of this run remembers")


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 8 questions in two orders: 6 initial failures, each of them in both streams."""
    out = tmp_path_factory.mktemp("run")
    model = ScriptedChatModel(replies=reply)
    record = ReplyRecord(out / "replies.sqlite")
    with (suite := load_mini()).catalogue:
        run_bench(
            plan=Plan(methods=(METHODS["iterative"],), orders=(0, 1), limit=8, budget=1),
            suite=suite,
            model=RecordedChatModel(inner=model, records=[record], identity=identity(model)),
            encoder=no_encoder,
            verdicts=Verdicts(own=record),
            out=out,
        )
    record.close()
    return out


def sample(run_folder: Path, sheet: Path, *more: str) -> int:
    return main(["validate-classifier", "sample", str(run_folder), "--output", str(sheet), *more])


def fill(sheet: Path, labels: dict[str, tuple[str, str]]) -> None:
    rows = list(csv.DictReader(io.StringIO(sheet.read_bytes().decode("utf-8-sig"), newline="")))
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        for row in rows:
            row["annotator_1"], row["annotator_2"] = labels[row["id"]]
            writer.writerow(row)


LABELS = {
    "2": ("Schema Linking", "Schema Linking"),
    "3": ("Schema Linking", "Syntax"),
    "4": ("Syntax", "Syntax"),
    "5": ("Result Mismatch", ""),
    "6": ("Filter/Value", ""),
    "7": ("", ""),
}


def test_fewer_failures_than_asked_for_are_all_taken(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "labels.csv"
    assert sample(run_folder, sheet) == 0
    shown = capsys.readouterr().out
    assert "6 of 6 initial failures" in shown
    assert "150 were asked for: the run has fewer, and all of them were taken" in shown
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"))))
    assert sorted(row["id"] for row in rows) == ["2", "3", "4", "5", "6", "7"]
    assert {row["question"] for row in rows} == {item["question"] for item in ITEMS[2:]}
    assert {(row["status"], row["error"]) for row in rows if row["id"] in "234"} == {
        ("EXECUTION_ERROR", "no such table: nowhere")
    }
    assert all(row["both"] == "yes" for row in rows)
    key = json.loads((tmp_path / "labels.key.json").read_text())
    assert key["population"] == {"Result Mismatch": 3, "Schema Linking": 3}


def test_the_figures_of_a_filled_sheet(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "labels.csv"
    sample(run_folder, sheet)
    fill(sheet, LABELS)
    capsys.readouterr()
    assert main(["validate-classifier", "score", str(sheet)]) == 0
    lines = capsys.readouterr().out.splitlines()
    figures = {line.split("  ")[0].strip(): line.split() for line in lines if line.strip()}
    assert "labelled: 5 of 6 (83.33 %)" in lines
    # 3 of 5 agree. Weights 3/3 for Schema Linking and 3/2 for Result Mismatch: (2 + 1.5) / 6.
    assert figures["accuracy %"][2:] == ["60.00", "58.33"]
    # Plain F1: Schema Linking 4/5, Result Mismatch 2/3, Syntax 0, Filter/Value 0; weighted: the same shares
    # of a type's weights, 4/5 and 3 / (1.5 + 3).
    assert figures["macro-F1"][1:] == ["0.367", "0.367"]
    assert figures["coverage %"][2:] == ["100.00", "100.00"]
    # Rows 2, 3 and 4 by both: 2 agree; p_e = (2 * 1 + 1 * 2) / 9, (2/3 - 4/9) / (5/9) = 0.4.
    assert "Cohen's kappa: 0.400, both labelled 3 rows and agreed on 2" in lines
    assert re.split(r" {2,}", next(line for line in lines if "Result Mismatch  " in line).strip()) == [
        "Result Mismatch",
        "Schema Linking",
        "Filter/Value",
        "Syntax",
    ]
    assert [figures[name][-4:] for name in ("Schema Linking", "Filter/Value", "Syntax")] == [
        ["0", "2", "0", "0"],
        ["1", "0", "0", "0"],
        ["0", "1", "0", "0"],
    ]


def test_weights_come_from_where_they_are_asked_for(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "labels.csv"
    sample(run_folder, sheet)
    fill(sheet, LABELS)
    (tmp_path / "labels.key.json").unlink()
    capsys.readouterr()
    assert main(["validate-classifier", "score", str(sheet)]) == 0
    assert "no weighted figures" in capsys.readouterr().out
    population = tmp_path / "population.json"
    population.write_text('{"population": {"Result Mismatch": 20, "Schema Linking": 60, "Unknown": 20}}')
    assert main(["validate-classifier", "score", str(sheet), "--population", str(population)]) == 0
    shown = capsys.readouterr().out
    # Schema Linking right in 2 of 3, Result Mismatch in 1 of 2: (40 + 10) / 80; 20 of 100 are Unknown.
    assert re.search(r"accuracy % +60\.00 +62\.50", shown)
    assert re.search(r"coverage % +100\.00 +80\.00", shown)
    assert "no row of the type has a label: Unknown" in shown


def test_a_part_is_drawn_by_its_seed(run_folder: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert sample(run_folder, tmp_path / f"{name}.csv", "--size", "4", "--seed", "3") == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    key = json.loads((tmp_path / "a.key.json").read_text())
    assert sorted(key["drawn"].values()) == ["Result Mismatch"] * 2 + ["Schema Linking"] * 2


def test_mistakes_end_with_a_message(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "labels.csv"
    assert sample(tmp_path / "none", sheet) == 2
    assert "holds no run" in capsys.readouterr().err
    sample(run_folder, sheet)
    assert sample(run_folder, sheet) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["validate-classifier", "score", str(sheet)]) == 2
    assert "no label yet" in capsys.readouterr().err
    fill(sheet, {**LABELS, "2": ("Schema", "")})
    assert main(["validate-classifier", "score", str(sheet)]) == 2
    assert re.search(r"row \d \(id 2\), annotator_1: 'Schema' .* allowed: Result", capsys.readouterr().err)
    with pytest.raises(SystemExit):
        sample(run_folder, tmp_path / "c.csv", "--size", "0")


def test_a_matrix_of_all_seven_types_is_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = [kind.value for kind in FailureKind]
    sheet = tmp_path / "labels.csv"
    lines = [f"{number},DENOTATION_MISMATCH,,{kind},\n" for number, kind in enumerate(kinds)]
    sheet.write_text("id,status,error,annotator_1,annotator_2\n" + "".join(lines))
    assert main(["validate-classifier", "score", str(sheet)]) == 0
    shown = capsys.readouterr().out.splitlines()
    header = next(line for line in shown if "Result Mismatch  " in line)
    assert re.split(r" {2,}", header.strip()) == kinds
    # Each label once, and each was predicted to be a Result Mismatch.
    for kind in kinds:
        row = next(line for line in reversed(shown) if line.strip().startswith(kind))
        assert row.strip().removeprefix(kind).split() == ["1"] + ["0"] * 6
