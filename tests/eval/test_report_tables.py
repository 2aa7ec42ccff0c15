"""Tables as Markdown, CSV, LaTeX and HTML: figures as they are, and text that stays text."""

import csv
import io
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merit_sql.eval.report.tables import (
    Cell,
    Column,
    Interval,
    Number,
    Spread,
    Table,
    as_csv,
    as_html,
    as_latex,
    as_markdown,
    text,
)


def table(*rows: tuple[Cell, ...]) -> Table:
    columns = (
        text("method"),
        Column(name="points"),
        Column(name="EX", kind="spread"),
        Column(name="95 %", kind="interval"),
    )
    return Table(name="t", title="A title", columns=columns, rows=rows, notes=("A note.",))


ROW = (
    "merit_x",
    Number(value=1234.5, decimals=1, signed=True),
    Spread(mean=69.787, deviation=0.594),
    Interval(low=-0.19, high=3.034),
)
EMPTY = ("none", None, Spread(mean=1.0, deviation=None, decimals=0), None)


def test_markdown_shows_mean_and_deviation_and_both_ends() -> None:
    lines = as_markdown([table(ROW, EMPTY)]).splitlines()
    assert lines[0] == "### A title"
    assert lines[2] == "| method | points | EX | 95 % |"
    assert lines[3] == "| --- | ---: | ---: | ---: |"
    assert lines[4] == r"| merit\_x | +1,234.5 | 69.79 ± 0.59 | \[-0.19, 3.03\] |"
    assert lines[5] == "| none | – | 1 | – |"
    assert lines[7] == "A note."


def test_csv_gives_bare_numbers_in_columns_of_their_own() -> None:
    blocks = list(csv.reader(io.StringIO(as_csv([table(ROW, EMPTY), table(ROW)]))))
    assert blocks[0] == ["A title"]
    assert blocks[1] == ["method", "points", "EX", "EX SD", "95 % low", "95 % high"]
    assert blocks[2] == ["merit_x", "1234.5", "69.79", "0.59", "-0.19", "3.03"]
    assert blocks[3] == ["none", "", "1", "", "", ""]
    assert blocks[4:6] == [[], ["A title"]]


def test_latex_is_a_booktabs_table() -> None:
    lines = as_latex([table(ROW)]).splitlines()
    assert r"\begin{tabular}{lrrr}" in lines
    assert r"merit\_x & +1,234.5 & 69.79 \(\pm\) 0.59 & {[}-0.19, 3.03{]} \\" in lines


@pytest.mark.parametrize(
    ("value", "decimals", "shown"), [(-0.001, 2, "0.00"), (0.004, 2, "0.00"), (-0.006, 2, "-0.01")]
)
def test_zero_has_no_sign(value: float, decimals: int, shown: str) -> None:
    assert str(Number(value=value, decimals=decimals, signed=value < 0)) == shown


@pytest.mark.parametrize("cell", ["=1+1", "+A1", "-2", "@SUM(A1)", "  =1", "\t=1", "\r\n=1"])
def test_a_spreadsheet_takes_no_text_for_a_formula(cell: str) -> None:
    rows = list(csv.reader(io.StringIO(as_csv([table((cell, None, None, None))]))))
    assert rows[2][0].startswith("'")


LATEX = {
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
}  # fmt: skip


@pytest.mark.parametrize("special", LATEX)
def test_latex_specials_are_escaped(special: str) -> None:
    assert f"a{LATEX[special]}b & –".replace("–", "--") in as_latex(
        [table((f"a{special}b", None, None, None))]
    )


def test_latex_never_ends_a_line_early() -> None:
    shown = as_latex([table(("a\\\\input{x}\n%b", None, None, None))])
    assert r"a\textbackslash{}\textbackslash{}input\{x\} \%b & --" in shown


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("a|b", r"a\|b"),
        ("<b>x</b>", "&lt;b&gt;x&lt;/b&gt;"),
        ("[x](http://y)", r"\[x\](http\://y)"),
        ("www.evil.example", r"www\.evil.example"),
        ("two\nlines", "two lines"),
        ("*a* `b` _c_ ~d~ $e$", r"\*a\* \`b\` \_c\_ \~d\~ \$e\$"),
        ("&amp;", "&amp;amp;"),
    ],
)
def test_markdown_makes_nothing_of_text(hostile: str, shown: str) -> None:
    assert f"| {shown} | – | – | – |" in as_markdown([table((hostile, None, None, None))])


class Cells(HTMLParser):
    """Collects the tags and the texts of cells."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        self.texts.append(self.texts.pop() + data) if self.texts else None


KNOWN = {"div", "table", "caption", "thead", "tr", "th", "tbody", "td", "p"}


@given(st.text(max_size=40))
def test_html_holds_any_text_as_one_cell_and_no_element_of_its_own(hostile: str) -> None:
    parser = Cells()
    parser.feed(as_html(table((f"x{hostile}y", None, None, None))))
    assert parser.tags <= KNOWN
    kept = re.sub(r"\s+", " ", f"x{hostile}y")
    assert any(len(found) == len(kept) and found[0] + found[-1] == "xy" for found in parser.texts if found)


@given(st.text(max_size=40))
def test_csv_and_markdown_keep_their_columns_whatever_a_cell_holds(hostile: str) -> None:
    rows = list(csv.reader(io.StringIO(as_csv([table((hostile, None, None, None))]))))
    assert [len(row) for row in rows] == [1, 6, 6]
    line = as_markdown([table((hostile, None, None, None))]).split("\n")[4]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 5


def test_headers_say_whether_they_are_of_a_column_or_a_row() -> None:
    html = as_html(table(ROW))
    assert html.count('<th scope="col"') == 4
    assert html.count('<th scope="row"') == 1
    assert '<caption id="caption-t">A title</caption>' in html
