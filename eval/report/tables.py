"""Tables as values, and how they are written as Markdown, CSV, LaTeX and HTML; all text in them is data."""

import csv
import html
import io
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

ABSENT = "–"
"""What stands where there is no figure."""

Kind: TypeAlias = Literal["text", "number", "spread", "interval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A figure with its decimals; `signed` shows a plus, `partial` marks a sum of which a part is unknown."""

    value: float
    decimals: int = 0
    signed: bool = False
    partial: bool = False

    def __str__(self) -> str:
        shown = f"{self.value:{'+' if self.signed else ''},.{self.decimals}f}"
        return _no_negative_zero(shown) + ("+?" if self.partial else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A mean over orders with its sample standard deviation, None where there is one order only."""

    mean: float
    deviation: float | None
    decimals: int = 2
    partial: bool = False

    def __str__(self) -> str:
        mean = str(Number(value=self.mean, decimals=self.decimals, partial=self.partial))
        if self.deviation is None:
            return mean
        return f"{mean} ± {Number(value=self.deviation, decimals=self.decimals)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval, both ends included."""

    low: float
    high: float
    decimals: int = 2

    def __str__(self) -> str:
        return f"[{_decimal(self.low, self.decimals)}, {_decimal(self.high, self.decimals)}]"


Cell: TypeAlias = str | Number | Spread | Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column's heading and what its cells hold."""

    name: str
    kind: Kind = "number"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table: `name` is its key, `title` what a reader sees, `notes` what they must know beside it."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


def text(name: str) -> Column:
    """A column of text."""
    return Column(name=name, kind="text")


def spread_column(name: str) -> Column:
    """A column of means over orders with their deviations."""
    return Column(name=name, kind="spread")


def plain_text(value: str) -> str:
    """`value` on one line: white space is one space, control and unpaired characters become U+FFFD."""
    spaced = re.sub(r"\s+", " ", value)
    return "".join("\ufffd" if unicodedata.category(one) in {"Cc", "Cs"} else one for one in spaced)


def as_markdown(tables: Sequence[Table]) -> str:
    """GitHub-flavoured Markdown; every character that could start markup is escaped."""
    return "\n".join(_markdown(table) for table in tables)


def _markdown(table: Table) -> str:
    rule = ["---" if column.kind == "text" else "---:" for column in table.columns]
    rows = [
        [_markdown_text(column.name) for column in table.columns],
        rule,
        *([_markdown_text(_shown(cell)) for cell in row] for row in table.rows),
    ]
    lines = [f"### {_markdown_text(table.title)}", "", *("| " + " | ".join(row) + " |" for row in rows)]
    for note in table.notes:
        lines += ["", _markdown_text(note)]
    return "\n".join(lines) + "\n"


def _markdown_text(value: str) -> str:
    escaped = html.escape(re.sub(r"([\\`*_{}\[\]#|~$!@])", r"\\\1", plain_text(value)), quote=False)
    return re.sub(r"\b(https?|ftp|www)([:.])", r"\1\\\2", escaped, flags=re.IGNORECASE)


def as_csv(tables: Sequence[Table]) -> str:
    """CSV (RFC 4180): a block a table, with its title, its header and its rows; blocks part at empty lines.

    Numbers are bare; a mean and its deviation, and the ends of an interval, are columns of their own. A text
    that a spreadsheet would take for a formula is preceded by an apostrophe.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    for index, table in enumerate(tables):
        if index:
            writer.writerow([])
        writer.writerow([_csv_text(table.title)])
        writer.writerow([name for column in table.columns for name in _csv_names(column)])
        for row in table.rows:
            pairs = zip(table.columns, row, strict=True)
            writer.writerow([value for column, cell in pairs for value in _csv_values(column, cell)])
    return out.getvalue()


def _csv_names(column: Column) -> list[str]:
    name = _csv_text(column.name)
    return {"spread": [name, f"{name} SD"], "interval": [f"{name} low", f"{name} high"]}.get(
        column.kind, [name]
    )


def _csv_values(column: Column, cell: Cell) -> list[str]:
    match cell:
        case None:
            return [""] * (2 if column.kind in {"spread", "interval"} else 1)
        case str():
            return [_csv_text(cell)]
        case Number():
            return [_decimal(cell.value, cell.decimals)]
        case Spread():
            deviation = "" if cell.deviation is None else _decimal(cell.deviation, cell.decimals)
            return [_decimal(cell.mean, cell.decimals), deviation]
        case Interval():
            return [_decimal(cell.low, cell.decimals), _decimal(cell.high, cell.decimals)]


def _csv_text(value: str) -> str:
    shown = plain_text(value)
    return f"'{shown}" if shown.lstrip()[:1] in {"=", "+", "-", "@"} else shown


_LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "[": "{[}",
    "]": "{]}",
    "±": r"\(\pm\)",
    "−": r"\(-\)",
    "–": "--",
    "×": r"\(\times\)",
}  # fmt: skip


def as_latex(tables: Sequence[Table]) -> str:
    """LaTeX ``table`` environments for ``booktabs`` and ``[T1]{fontenc}``; every special is escaped."""
    return "\n".join(_latex(table) for table in tables)


def _latex(table: Table) -> str:
    lines = [
        r"\begin{table}",
        rf"\caption{{{_latex_text(table.title)}}}",
        r"\begin{tabular}{" + "".join("l" if one.kind == "text" else "r" for one in table.columns) + "}",
        r"\toprule",
        " & ".join(_latex_text(column.name) for column in table.columns) + r" \\",
        r"\midrule",
        *(" & ".join(_latex_text(_shown(cell)) for cell in row) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par {_latex_text(note)}" for note in table.notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_text(value: str) -> str:
    return "".join(_LATEX.get(one, one) for one in plain_text(value))


def as_html(table: Table) -> str:
    """One HTML table with a caption and headers of columns and rows, in a region that scrolls by itself."""
    name = markup(table.name)
    head = "".join(
        f'<th scope="col"{_numeric(column.kind)}>{markup(column.name)}</th>' for column in table.columns
    )
    body = "".join(f"<tr>{_html_row(table, row)}</tr>" for row in table.rows)
    notes = "".join(f'<p class="note">{markup(note)}</p>' for note in table.notes)
    return (
        f'<div class="wide" role="region" aria-labelledby="caption-{name}" tabindex="0">'
        f'<table><caption id="caption-{name}">{markup(table.title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{notes}\n"
    )


def _html_row(table: Table, row: Sequence[Cell]) -> str:
    first, *rest = ((column, markup(_shown(cell))) for column, cell in zip(table.columns, row, strict=True))
    cells = "".join(f"<td{_numeric(column.kind)}>{shown}</td>" for column, shown in rest)
    return f'<th scope="row">{first[1]}</th>{cells}'


def _numeric(kind: Kind) -> str:
    return "" if kind == "text" else ' class="n"'


def markup(value: str) -> str:
    """`value` as inert HTML text or attribute value."""
    return html.escape(plain_text(value), quote=True)


def _shown(cell: Cell) -> str:
    return ABSENT if cell is None else str(cell)


def _decimal(value: float, decimals: int) -> str:
    return _no_negative_zero(f"{value:.{decimals}f}")


def _no_negative_zero(shown: str) -> str:
    return shown if set(shown) - set("-+0.") else shown.lstrip("-+")


WRITERS: Mapping[str, Callable[[Sequence[Table]], str]] = {
    "markdown": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
}
"""How tables are written, by the name of the format."""
