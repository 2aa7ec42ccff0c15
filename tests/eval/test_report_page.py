"""The report's page as bytes: self-contained, inert, the same for the same runs; and its sentences."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from merit_sql.eval.datasets import Question
from merit_sql.eval.report.against import against_paper
from merit_sql.eval.report.data import OUTCOMES, script_json
from merit_sql.eval.report.figures import Part, part_of
from merit_sql.eval.report.overview import answers, warnings
from merit_sql.eval.report.page import page
from merit_sql.eval.report.reading import open_run
from merit_sql.eval.report.sections import all_tables
from merit_sql.eval.report.sources import combine
from merit_sql.eval.report.tables import Cell, Table

MakeRun = Callable[..., Path]
HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> & \u2028 \ud800 '\"`"


def parts_of(*folders: Path, labelled: bool = False) -> list[Part]:
    sources = combine([open_run(folder) for folder in folders], labelled=labelled)
    return [part_of(source, "merit") for source in sources]


class Elements(HTMLParser):
    """Collects start tags with their attributes, and the text of each script."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str | None, str] = {}
        self._inside: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = dict(attrs).get("id", "code") if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is not None:
            self.scripts[self._inside] = self.scripts.get(self._inside, "") + data


def test_the_same_runs_give_the_same_bytes(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", orders=(0, 1))
    assert page(parts_of(run), against=True) == page(parts_of(run), against=True)


def test_the_page_asks_for_nothing_and_allows_only_its_own_script_and_style(
    make_run: MakeRun, tmp_path: Path
) -> None:
    html = page(parts_of(make_run(tmp_path / "run")), against=True).decode()
    elements = Elements(html)
    policy = next(a["content"] for _, a in elements.found if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    style = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)[0]
    for kind, text in (("script-src", elements.scripts["code"]), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    for tag, attributes in elements.found:
        assert tag not in {"link", "iframe", "object", "embed", "base", "img"}
        assert not {"src", "style", "srcset"} & attributes.keys()
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", elements.scripts["code"]
    )


def test_hostile_text_is_in_the_data_and_nowhere_in_the_markup(make_run: MakeRun, tmp_path: Path) -> None:
    asked = [
        Question(id=n, database_id=HOSTILE, question=HOSTILE, evidence=HOSTILE, difficulty=HOSTILE)
        for n in range(3)
    ]
    # Surrogates cannot be in UTF-8 files: what a ledger holds of them is escaped by JSON.
    plain = [replace(one, database_id=HOSTILE.replace("\ud800", "")) for one in asked]
    html = page(parts_of(make_run(tmp_path / "run", questions=plain))).decode()
    elements = Elements(html)
    tags = [tag for tag, _ in elements.found]
    assert tags.count("script") == 1 + len([name for name in elements.scripts if name != "code"])
    assert "img" not in tags and "<!--" not in html and "alert(1)</script" not in html
    questions = json.loads(elements.scripts["index"])["questions"]
    assert questions[0][2] == HOSTILE and questions[0][4] == HOSTILE
    assert {"&", "<", ">", "\u2028"}.isdisjoint(
        "".join(t for n, t in elements.scripts.items() if n != "code")
    )


def test_json_for_a_script_reads_back_as_it_was() -> None:
    document = {"a": [HOSTILE, "é", None, 0.5]}
    text = script_json(document)
    assert text.isascii() and json.loads(text) == document


def index_of(*folders: Path) -> dict[str, Any]:
    elements = Elements(page(parts_of(*folders)).decode())
    index: dict[str, Any] = json.loads(elements.scripts["index"])
    return index


def test_the_index_tells_each_episodes_outcome(make_run: MakeRun, tmp_path: Path) -> None:
    at = {0: 0, 1: 1, 2: 2, 3: None}
    run = make_run(tmp_path / "run", methods=("merit",), questions=4, right_at=lambda m, o, n: at[n])
    (stream,) = index_of(run)["streams"]
    told = {stream["q"][p]: (OUTCOMES[stream["o"][p]], stream["n"][p]) for p in range(4)}
    assert told == {
        0: ("right at first", 1),
        1: ("repaired", 2),
        2: ("repaired", 3),
        3: ("unresolved", 3),
    }


def test_the_page_opens_at_position_17_of_the_reference(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", questions=20, orders=(0, 1))
    index = index_of(run)
    assert [index["streams"][index["opened"][0]][key] for key in ("method", "order")] == ["merit", 0]
    assert index["opened"][1] == 17
    assert index_of(make_run(tmp_path / "short", questions=5))["opened"][1] == 4


def test_every_chart_has_a_title_and_a_description(make_run: MakeRun, tmp_path: Path) -> None:
    html = page(parts_of(make_run(tmp_path / "run"))).decode()
    charts = re.findall(r'<svg class="chart" role="img"[^>]*aria-labelledby="([^ ]+) ([^"]+)"', html)
    keys = {title.removeprefix("plot-").removesuffix("-title") for title, _ in charts}
    assert keys == {
        "accuracy", "learning", "steps", "composition", "flow-0", "flow-1", "tokens", "growth", "reuse",
    }  # fmt: skip
    for title, description in charts:
        assert re.search(rf'<title id="{title}">[^<]+</title><desc id="{description}">[^<]+</desc>', html)
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def shown(cells: tuple[Cell, ...]) -> list[str]:
    return ["–" if cell is None else str(cell) for cell in cells]


def table(tables: list[Table], name: str) -> Table:
    return next(one for one in tables if one.name == name)


def test_the_tables_hold_what_was_counted_by_hand(make_run: MakeRun, tmp_path: Path) -> None:
    # 12 questions: 0, 3, 6, 9 right at first. merit repairs 2, 4, 8, 10 at step 1; iterative 4 and 8.
    # K = 2: merit revises 4·1 + 4·2 = 12 times, iterative 2·1 + 6·2 = 14 times.
    tables = all_tables(parts_of(make_run(tmp_path / "run")))
    methods = table(tables, "methods")
    assert [column.name for column in methods.columns][3] == "EX strict %"
    iterative, merit = (shown(row) for row in methods.rows)
    assert iterative[:4] == ["iterative", "0", "12", "50.00"]
    assert merit[:4] == ["merit", "0", "12", "66.67"]
    assert iterative[5:10] == ["50.00", "33.33", "2.0", "0.0", "1.750"]
    assert merit[5:10] == ["66.67", "33.33", "4.0", "0.0", "1.500"]
    calls = table(tables, "calls")
    assert [shown(row)[:4] for row in calls.rows] == [
        ["iterative", "26.0", "12.0", "14.0"],
        ["merit", "24.0", "12.0", "12.0"],
    ]
    # merit: 12 initial predictions of 90 + 20 tokens and 12 revisions of 100 + 10; the initial ones again.
    assert shown(table(tables, "tokens").rows[1])[1:5] == ["2,280", "360", "1,080", "240"]
    assert shown(table(tables, "seconds").rows[0]) == [
        "iterative", "12", "12", "24.0", "18.0", "0.0", "0.0", "3.0", "3.0",
    ]  # fmt: skip
    # Schema Linking: 7 and 11 (3 is right at first), never repaired; Result Mismatch: 1, 2, 4, 5, 8, 10.
    assert [shown(row) for row in table(tables, "failure-type").rows] == [
        ["Result Mismatch", "6", "33.3", "66.7"],
        ["Schema Linking", "2", "0.0", "0.0"],
    ]
    assert [shown(row) for row in table(tables, "database").rows] == [
        ["db_0", "4", "100.0", "100.0"],
        ["db_1", "4", "25.0", "50.0"],
        ["db_2", "4", "25.0", "50.0"],
    ]
    (mcnemar,) = table(tables, "mcnemar").rows
    assert shown(mcnemar) == ["merit − iterative", "0", "2", "0", "0.5000", "0.5000"]
    (difference,) = table(tables, "differences").rows
    assert shown(difference)[:4] == ["merit − iterative", "0", "12", "+16.67"]
    assert [shown(row) for row in table(tables, "steps").rows] == [
        ["iterative", "33.33", "50.00", "50.00"],
        ["merit", "33.33", "66.67", "66.67"],
    ]


def test_holm_corrects_over_the_comparisons_of_an_order(make_run: MakeRun, tmp_path: Path) -> None:
    # 24 questions, none right at first; merit gets all, a gets 18, b none: discordant 6:0 and 24:0.
    right = {"merit": 24, "a": 18, "b": 0}
    run = make_run(
        tmp_path / "run",
        methods=("a", "b", "merit"),
        questions=24,
        right_at=lambda method, order, number: 1 if number < right[method] else None,
    )
    rows = [shown(row) for row in table(all_tables(parts_of(run)), "mcnemar").rows]
    # p = 2·½⁶ = 0.03125, the larger of two: × 1; p = 2·½²⁴: × 2.
    assert rows[0] in (
        ["merit − a", "0", "6", "0", "0.0312", "0.0312"],
        ["merit − a", "0", "6", "0", "0.0313", "0.0313"],
    )
    assert rows[1][:4] == ["merit − b", "0", "24", "0"]


def test_the_overview_names_the_better_method_and_whether_that_is_certain(
    make_run: MakeRun, tmp_path: Path
) -> None:
    run = make_run(
        tmp_path / "run",
        questions=40,
        right_at=lambda method, order, number: 1 if method == "merit" or number < 10 else None,
    )
    better, certain, where, cost = answers(parts_of(run)[0])
    assert better.answer.startswith("merit: right on 100.00 % of 40 questions, with 40 repaired of 40")
    assert certain.answer == "merit is better than iterative: the interval leaves out 0."
    assert certain.details[0].startswith("merit − iterative: +75.00 points, 95 % interval [")
    # Of 10 … 39, 11, 15, …, 39 are Schema Linking: 8 of 30.
    assert where.details[0] == "By failure type: Result Mismatch +22.0, Schema Linking +8.0"
    assert cost.answer.startswith("merit: 80 calls and 8,800 tokens an order, 2.00 calls a question")


def test_equal_methods_are_called_level_and_nothing_certain(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", right_at=lambda *_: 0)
    better, certain, *_ = answers(parts_of(run)[0])
    assert better.answer.startswith("iterative and merit are level: right on 100.00 %")
    assert certain.answer == "Between merit and iterative these questions do not decide."


def test_a_worse_reference_is_said_to_be_worse(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(
        tmp_path / "run", questions=30, right_at=lambda m, o, n: 0 if m == "iterative" or n == 0 else None
    )
    _, certain, *_ = answers(parts_of(run)[0])
    assert certain.answer == "merit is worse than iterative: the interval leaves out 0."


def test_one_question_and_one_method_make_a_report_without_intervals(
    make_run: MakeRun, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "run", methods=("iterative",), questions=1)
    html = page(parts_of(run), against=True).decode()
    assert "Only iterative was run: right on 100.00 % of 1 questions" in html
    assert not re.search(r"\bnan\b", html)


def test_what_is_unfinished_is_said_with_its_counts(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(
        tmp_path / "run",
        orders=(0, 1),
        finished={("iterative", 0): 7, ("merit", 0): 12, ("merit", 1): 4},
    )
    assert warnings(parts_of(run)) == [
        "Unfinished: iterative, order 0, has 7 of 12 episodes; its figures are preliminary.",
        "Unfinished: merit, order 1, has 4 of 12 episodes; it is left out of the figures.",
        "Not begun: iterative order 1 (0 of 12 episodes each).",
    ]


def test_labelled_sources_are_warned_of_with_what_differs(make_run: MakeRun, tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", methods=("merit",))
    two = make_run(tmp_path / "two", methods=("merit",), identity={"budget": 5})
    parts = parts_of(one, two, labelled=True)
    said = warnings(parts)
    assert "There, budget = 2." in said[0] and "There, budget = 5." in said[1]
    tables = all_tables(parts)
    assert [shown(row)[0] for row in table(tables, "methods").rows] == ["merit · A", "merit · B"]
    assert {"difficulty-A", "difficulty-B"} <= {one.name for one in tables}


def test_against_the_paper_says_what_differs_and_shows_both(make_run: MakeRun, tmp_path: Path) -> None:
    tables = against_paper(parts_of(make_run(tmp_path / "run")))
    settings = {row[0]: shown(row)[1:] for row in table(tables, "paper-settings-spider").rows}
    assert settings["model"] == ["Qwen/Qwen2.5-7B-Instruct", "small", "DIFFERS"]
    assert settings["quantisation"] == ["4-bit NF4", "Q8_0", "DIFFERS"]
    assert settings["encoder"] == ["BAAI/bge-large-en-v1.5", "hashing", "DIFFERS"]
    assert settings["databases present"] == ["20", "3 of 20", "DIFFERS"]
    assert settings["regime"][2] == "same"
    results = {row[0]: shown(row) for row in table(tables, "paper-results-spider").rows}
    # 112.7 of 425 repaired is 26.52 %; 4 of 8 is 50 %.
    assert results["merit"][1:6] == ["69.79 ± 0.59", "66.67", "66.67", "26.52", "50.00"]
    assert results["no_bm25"][1:4] == ["70.37 ± 0.20", "–", "–"]
    pairs = {row[0]: shown(row) for row in table(tables, "paper-differences-spider").rows}
    assert pairs["merit − iterative"][1:4] == ["+3.45", "[1.97, 4.96]", "+16.67"]
    assert not [one for one in tables if "bird" in one.name]


def test_a_suite_that_the_paper_has_not_is_set_beside_both_and_says_so(
    make_run: MakeRun, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "run", identity={"scoring": {"suite": "mini"}})
    tables = against_paper(parts_of(run))
    for name in ("spider", "bird"):
        notes = table(tables, f"paper-settings-{name}").notes
        assert "The authors published no figures for the suite mini." in notes


@pytest.mark.parametrize("budget", [0, 2])
def test_a_method_that_never_revises_has_no_steps_and_no_flow(
    make_run: MakeRun, tmp_path: Path, budget: int
) -> None:
    run = make_run(tmp_path / "run", methods=("zero_shot",), budget=budget, right_at=lambda *_: 0)
    tables = all_tables(parts_of(run))
    assert shown(table(tables, "methods").rows[0])[9] == "–"
    assert table(tables, "flow-zero_shot").rows == ()
    page(parts_of(run))
