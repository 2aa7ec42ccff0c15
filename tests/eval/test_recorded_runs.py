"""The real runs whose replies ship: each repeats from its record, twice, to the same bytes and the figures
that the run itself printed when the model answered."""

from pathlib import Path

import pytest

from merit_sql.app.cli import main
from merit_sql.models.download import folder_of
from merit_sql.models.files import present
from merit_sql.models.registry import MINILM_L6_V2

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(
        not present(MINILM_L6_V2, folder_of(MINILM_L6_V2)),
        reason=f"the encoder is not in the cache: merit model pull {MINILM_L6_V2.name}",
    ),
]

RECORDS = Path(__file__).parents[2] / "eval" / "records"

SPIDER = ("--suite", "spider", "--databases", "concert_singer,pets_1", "--method", "iterative,merit")
BIRD = ("--suite", "bird", "--databases", "superhero", "--limit", "20", "--method", "merit")
DBGPT = ("--suite", "spider", "--databases", "pets_1,flight_2", "--limit", "90", "--method", "merit")

# Rows as the runs with the real model printed them, up to the seconds.
ITERATIVE_ROW = "iterative 0 59.77 59.77 6 41 6.122 40.23 85.37 338 198,757 16,963"
MERIT_ROW = "merit 0 70.11 70.11 15 41 4.805 31.03 65.85 284 262,051 15,357"
BIRD_ROW = "merit 0 50.00 50.00 3 13 5.692 55.00 84.62 94 84,402 4,551"
DBGPT_ROW = "merit 0 92.22 92.22 12 19 3.211 7.78 36.84 61 59,385+? 3,142+?"
DEMO_ROWS = (
    "iterative 0 75.00 75.00 3 5 1.800 25.00 40.00 17 11,528 881",
    "merit 0 75.00 75.00 3 5 1.800 25.00 40.00 17 14,833 964",
)


def rows(printed: str, methods: tuple[str, ...]) -> list[str]:
    """The rows of the results table without their last column, the seconds."""
    lines = [line.split() for line in printed.splitlines()]
    return [" ".join(line[:-1]) for line in lines if len(line) == 13 and line[0] in methods]


def ledgers(out: Path) -> dict[str, bytes]:
    return {file.parent.name: file.read_bytes() for file in sorted(out.glob("*/episodes.jsonl"))}


@pytest.mark.parametrize(
    ("record", "options", "expected"),
    [
        ("spider-generate-merit", SPIDER, (ITERATIVE_ROW, MERIT_ROW)),
        ("bird-superhero-merit", BIRD, (BIRD_ROW,)),
        ("spider-dbgpt-merit", DBGPT, (DBGPT_ROW,)),
    ],
)
def test_a_real_run_repeats_from_its_record(
    record: str,
    options: tuple[str, ...],
    expected: tuple[str, ...],
    merit_data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if record == "spider-dbgpt-merit":
        options = (*options, "--initial", str(merit_data / "predictions" / "spider" / "dbgpt-hub-lora.sql"))
    command = ["bench", *options, "--data", str(merit_data), "--model", f"replay:{RECORDS / record}", "--out"]
    for folder in ("once", "again"):
        assert main([*command, str(tmp_path / folder)]) == 0
        assert rows(capsys.readouterr().out, ("iterative", "merit")) == list(expected)
    assert ledgers(tmp_path / "once") == ledgers(tmp_path / "again")
    assert len(ledgers(tmp_path / "once")) == len(expected)


def test_the_demo_repeats_from_its_record_and_ends_with_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "demo"
    assert main(["demo", "--replies", str(RECORDS / "demo"), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert rows(printed, ("iterative", "merit")) == list(DEMO_ROWS)
    assert "merit: 3 repaired, 2 with memories in the last prompt" in printed
    assert str(out / "report.html") in printed.splitlines()[-1]
    assert "<!doctype html>" in (out / "report.html").read_text().lower()
