"""How a benchmark's results look in a terminal."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from merit_sql.eval.bench import Plan, RunResult
from merit_sql.eval.forecast import SQL_TOKENS, STEPS_SHARE, WRONG_SHARE, Forecast
from merit_sql.eval.metrics import Metrics, Tokens
from merit_sql.eval.streams import StreamResult
from merit_sql.prompts.rendering import ESTIMATE

WIDTH = 140
"""Columns of a table that is written to a pipe or a file."""


def console() -> Console:
    """A console that wraps at the terminal's width, and at `WIDTH` where there is no terminal."""
    return Console() if Console().is_terminal else Console(width=WIDTH)


def results_table(result: RunResult) -> Table:
    """One row a stream; percentages are × 100, steps are repair generations per initially wrong question."""
    title = f"{len(result.selection.questions)} questions, run {result.run}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.pad_edge = False
    table.add_column("method", no_wrap=True)
    headers = (
        "order", "EX strict", "EX official", "repaired", "of wrong", "steps",
        "osc. of all", "osc. of wrong", "calls", "prompt tokens", "output tokens", "seconds",
    )  # fmt: skip
    for header in headers:
        table.add_column(header, justify="right")
    for stream in result.streams:
        table.add_row(*_row(stream))
    return table


def _row(stream: StreamResult) -> Sequence[str]:
    metrics = stream.metrics
    return (
        stream.method,
        str(stream.order),
        percent(metrics.execution_accuracy),
        percent(metrics.official_accuracy),
        str(metrics.repaired),
        str(metrics.initially_wrong),
        "–" if metrics.steps is None else f"{metrics.steps:.3f}",
        percent(metrics.oscillation),
        percent(metrics.oscillation_of_wrong),
        f"{metrics.calls:,}",
        tokens(metrics.prompt_tokens),
        tokens(metrics.output_tokens),
        f"{stream.timings.seconds:,.0f}",
    )


def forecast_table(rows: Sequence[Forecast], questions: int, prices: tuple[float, float] | None) -> Table:
    """One row a part of the run, and their sum; `prices` are per million prompt and output tokens."""
    table = Table(title=f"{questions} questions, expected", title_justify="left", box=box.SIMPLE_HEAD)
    table.pad_edge = False
    table.add_column("", no_wrap=True)
    for header in ("calls", "prompt tokens", "output tokens", *(("cost",) if prices else ())):
        table.add_column(header, justify="right")
    total = Forecast(
        name="together",
        calls=sum(row.calls for row in rows),
        prompt_tokens=sum(row.prompt_tokens for row in rows),
        output_tokens=sum(row.output_tokens for row in rows),
    )
    for row in (*rows, total):
        cells = [row.name, *(f"{n:,.0f}" for n in (row.calls, row.prompt_tokens, row.output_tokens))]
        table.add_row(*cells, *((f"{row.cost(*prices):,.2f}",) if prices else ()))
    return table


def forecast_notes(plan: Plan) -> list[str]:
    """What the expectation rests on."""
    lines = [
        f"Taken for granted: {percent(WRONG_SHARE)} % of the questions wrong at first and "
        f"{STEPS_SHARE * plan.budget:.2f} revisions for each, as in the published Spider run; prompt tokens "
        f"by the estimate {ESTIMATE}, {SQL_TOKENS} output tokens a query.",
        "Methods without memory ask the same in every order: they are counted once.",
    ]
    if plan.predictions is not None:
        lines.append("Initial predictions come from a file and cost nothing here.")
    return lines


def notes(result: RunResult) -> list[str]:
    """What a reader of the table must know beside it."""
    lines = []
    if result.initial_given:
        lines.append(
            "Initial predictions came from a file: they cost 0 calls, and their tokens are unknown (the +?)."
        )
    elif any(stream.metrics.prompt_tokens.unknown for stream in result.streams):
        lines.append("The model's server did not report all tokens: what it left out is unknown (the +?).")
    unscored = result.selection.unscored
    if unscored:
        counts: dict[str, int] = {}
        for question in unscored:
            counts[question.database_id] = counts.get(question.database_id, 0) + 1
        named = ", ".join(f"{name}: {count}" for name, count in sorted(counts.items()))
        lines.append(
            f"Unscored, not in N (no database, or its reference does not run): {len(unscored)} ({named})."
        )
    regressions = sum(stream.metrics.regressions for stream in result.streams)
    if regressions:
        lines.append(f"Regressions (initially right, finally wrong): {regressions}. There must be none.")
    return lines


def percent(share: float | None) -> str:
    """A share × 100 with two decimals."""
    return "–" if share is None else f"{100 * share:.2f}"


def tokens(count: Tokens) -> str:
    """A sum of tokens, with a mark where a part of it is unknown."""
    return f"{count.known:,}" + ("+?" if count.unknown else "")


def brief(metrics: Metrics) -> str:
    """The line beside the progress bar."""
    used = metrics.prompt_tokens.known + metrics.output_tokens.known
    return f"EX {percent(metrics.execution_accuracy)} · repaired {metrics.repaired} · {used:,} tokens"
