"""Tables of what methods cost, and of every stream by itself."""

from collections.abc import Callable, Sequence

from merit_sql.eval.metrics import Cost, Metrics
from merit_sql.eval.report.figures import Arm
from merit_sql.eval.report.tables import Cell, Column, Number, Spread, Table, spread_column, text


def calls_table(arms: Sequence[Arm]) -> Table:
    """What each method costs in calls and executions, whether or not replies were found in a record."""
    columns = ("calls", "initial", "repair", "reflection", "executions", "calls a question")
    rows = [
        (
            arm.name,
            *(
                arm.spread(figure, decimals=1)
                for figure in (
                    lambda one: one.calls,
                    lambda one: one.initial.calls,
                    lambda one: one.repair.calls,
                    lambda one: one.reflection.calls,
                    lambda one: one.executions,
                )
            ),
            arm.spread(lambda one: one.calls / one.questions if one.questions else None),
        )
        for arm in arms
    ]
    note = "As if every call had been made for this method and order, found in a record or not."
    return Table(
        name="calls",
        title="Calls of the model, and executions in databases",
        columns=(text("method"), *map(spread_column, columns)),
        rows=tuple(rows),
        notes=(note,),
    )


ROLES: tuple[tuple[str, Callable[[Metrics], Cost]], ...] = (
    ("all", lambda one: one.cost),
    ("initial", lambda one: one.initial),
    ("repair", lambda one: one.repair),
    ("reflection", lambda one: one.reflection),
)
"""What calls are made for, and how a stream's metrics hold their cost."""


def tokens_table(arms: Sequence[Arm]) -> Table:
    """Tokens by role, prompt and output apart."""
    columns = [spread_column(f"{role}: {what}") for role, _ in ROLES for what in ("prompt", "output")]
    rows = [(arm.name, *(cell for role, cost in ROLES for cell in _tokens(arm, cost))) for arm in arms]
    notes = ["Tokens of one order, by what its calls were made for."]
    if any(isinstance(cell, Spread) and cell.partial for row in rows for cell in row):
        notes.append("+? marks a sum that leaves out calls whose tokens nobody reported.")
    return Table(
        name="tokens",
        title="Tokens by role",
        columns=(text("method"), *columns),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _tokens(arm: Arm, cost: Callable[[Metrics], Cost]) -> tuple[Spread | None, Spread | None]:
    costs = [cost(one) for one in arm.metrics]
    return (
        arm.spread(
            lambda one: cost(one).prompt_tokens.known,
            decimals=0,
            partial=any(one.prompt_tokens.unknown for one in costs),
        ),
        arm.spread(
            lambda one: cost(one).output_tokens.known,
            decimals=0,
            partial=any(one.output_tokens.unknown for one in costs),
        ),
    )


def seconds_table(arms: Sequence[Arm]) -> Table:
    """What this machine really did: calls made and seconds spent, summed over the orders."""
    names = ("real calls", "seconds", "model", "databases", "retrieval", "encoder", "other")
    rows: list[tuple[Cell, ...]] = []
    for arm in arms:
        timings = [stream.timings for stream in arm.streams]
        total = sum(one.seconds for one in timings)
        parts = [
            sum(one.model_seconds for one in timings),
            sum(one.database_seconds for one in timings),
            sum(one.retrieval_seconds for one in timings),
            sum(one.encoder_seconds for one in timings),
        ]
        rows.append(
            (
                arm.name,
                Number(value=sum(one.episodes for one in timings)),
                Number(value=sum(one.real_calls for one in timings)),
                *(Number(value=part, decimals=1) for part in (total, *parts, max(0.0, total - sum(parts)))),
            )
        )
    note = (
        "Of this machine, all orders together: calls that no record answered, and wall-clock seconds. "
        "Initial predictions are made once for all methods and are in none of these rows."
    )
    return Table(
        name="seconds",
        title="Real calls and seconds by part",
        columns=(text("method"), Column(name="episodes timed"), *(Column(name=name) for name in names)),
        rows=tuple(rows),
        notes=(note,),
    )


def streams_table(arms: Sequence[Arm]) -> Table:
    """Every stream by itself, those that are not finished too."""
    columns = (
        text("method"), Column(name="order"), text("episodes"), Column(name="EX strict %"),
        Column(name="EX official %"), Column(name="repaired"), Column(name="initially wrong"),
        Column(name="calls"), Column(name="prompt tokens"), Column(name="output tokens"),
    )  # fmt: skip
    rows = []
    for arm in arms:
        left_out = [(stream, stream.metrics) for stream in arm.left_out]
        for stream, metrics in [*zip(arm.streams, arm.metrics, strict=True), *left_out]:
            rows.append(
                (
                    arm.name,
                    Number(value=stream.order),
                    f"{len(stream.records)} of {len(arm.source.questions)}",
                    _percent(metrics.execution_accuracy),
                    _percent(metrics.official_accuracy),
                    Number(value=metrics.repaired),
                    Number(value=metrics.initially_wrong),
                    Number(value=metrics.calls),
                    Number(value=metrics.prompt_tokens.known, partial=bool(metrics.prompt_tokens.unknown)),
                    Number(value=metrics.output_tokens.known, partial=bool(metrics.output_tokens.unknown)),
                )
            )
    return Table(name="streams", title="Every stream", columns=columns, rows=tuple(rows))


def _percent(share: float | None) -> Number | None:
    return None if share is None else Number(value=100 * share, decimals=2)
