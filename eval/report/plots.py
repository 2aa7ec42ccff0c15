"""The charts of a report, made of its figures."""

from collections.abc import Sequence
from dataclasses import dataclass

from merit_sql.eval.breakdowns import learning_curve, memory_growth, success_by_step
from merit_sql.eval.report.charts import (
    Bar,
    Dot,
    Frame,
    Series,
    bar_chart,
    dot_chart,
    line_chart,
    scatter_chart,
    thinned,
)
from merit_sql.eval.report.failures import budget_of, composition, first_type, flow_of, last_type, type_slot
from merit_sql.eval.report.figures import Arm, percentage
from merit_sql.eval.report.flows import flow_chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One chart under its key, with its heading and its SVG."""

    key: str
    title: str
    svg: str


def all_plots(arms: Sequence[Arm]) -> dict[str, Plot]:
    """Every chart of a report by key; a method's slot is its place among `arms`."""
    plots = [
        _accuracy(arms),
        _learning(arms),
        _steps(arms),
        _composition(arms),
        *(_flow(slot, arm) for slot, arm in enumerate(arms)),
        _tokens(arms),
        *_memory(arms),
    ]
    return {plot.key: plot for plot in plots}


def _accuracy(arms: Sequence[Arm]) -> Plot:
    dots = [
        Dot(
            name=f"{arm.name} (unfinished)" if arm.partial else arm.name,
            value=value,
            interval=None if arm.interval is None else arm.interval.interval,
            slot=slot,
        )
        for slot, arm in enumerate(arms)
        if (value := percentage(arm.mean(lambda one: one.execution_accuracy))) is not None
    ]
    said = "; ".join(
        f"{dot.name} {dot.value:.2f}"
        + ("" if dot.interval is None else f", interval {dot.interval[0]:.2f} to {dot.interval[1]:.2f}")
        for dot in dots
    )
    title = "Strict EX by method, with 95 % intervals"
    frame = Frame(key="plot-accuracy", title=title, description=said, x="EX strict, % of all questions")
    return Plot(key="accuracy", title=title, svg=dot_chart(frame, dots))


def _learning(arms: Sequence[Arm]) -> Plot:
    series = []
    for slot, arm in enumerate(arms):
        curves = [learning_curve(stream.records) for stream in arm.streams]
        points = []
        for position in range(min(map(len, curves))):
            wrong = sum(curve[position][0] for curve in curves)
            repaired = sum(curve[position][1] for curve in curves)
            if wrong:
                points.append((position + 1.0, 100 * repaired / wrong))
        series.append(Series(name=arm.name, points=thinned(points), slot=slot))
    title = "Learning curves: repaired so far, of the initially wrong so far"
    frame = Frame(
        key="plot-learning",
        title=title,
        description="At the end of the stream: " + _ends(series, " %"),
        x="episodes so far",
        y="repaired, %",
        steps=True,
    )
    return Plot(key="learning", title=title, svg=line_chart(frame, series))


def _steps(arms: Sequence[Arm]) -> Plot:
    series = []
    for slot, arm in enumerate(arms):
        curves = [success_by_step(stream.records, budget_of(arm.source)) for stream in arm.streams]
        means = [100 * sum(values) / len(values) for values in zip(*curves, strict=True)]
        points = tuple((float(k), value) for k, value in enumerate(means))
        series.append(Series(name=arm.name, points=points, slot=slot))
    title = "Success by step: right after at most k revisions"
    frame = Frame(
        key="plot-steps",
        title=title,
        description="After the last revision: " + _ends(series, " %"),
        x="revisions k",
        y="right, % of all",
        steps=True,
    )
    return Plot(key="steps", title=title, svg=line_chart(frame, series))


def _composition(arms: Sequence[Arm]) -> Plot:
    counted = [
        (f"{arm.name}, {which}", composition(arm, kind))
        for arm in arms
        for which, kind in (("first", first_type), ("last", last_type))
    ]
    kinds = sorted({kind for _, counts in counted for kind in counts}, key=type_slot)
    bars = [
        Bar(
            name=name,
            parts=tuple((kind, counts[kind], type_slot(kind)) for kind in kinds if kind in counts),
        )
        for name, counts in counted
    ]
    said = "; ".join(
        f"{bar.name}: " + (", ".join(f"{kind} {size:.1f}" for kind, size, _ in bar.parts) or "none")
        for bar in bars
    )
    title = "Failure types of the first and the last attempts"
    frame = Frame(key="plot-composition", title=title, description=said, x="questions, mean over orders")
    return Plot(key="composition", title=title, svg=bar_chart(frame, bars))


def _flow(slot: int, arm: Arm) -> Plot:
    flow = flow_of(arm)
    said = "; ".join(f"{before} to {after}: {count:.1f}" for (before, after), count in sorted(flow.items()))
    title = f"From one attempt's type to the next's: {arm.name}"
    frame = Frame(
        key=f"plot-flow-{slot}",
        title=title,
        description=said or "No attempt followed another.",
        x="attempts on the left, the ones that followed them on the right",
    )
    return Plot(key=f"flow-{slot}", title=title, svg=flow_chart(frame, flow, type_slot))


def _tokens(arms: Sequence[Arm]) -> Plot:
    dots = []
    for slot, arm in enumerate(arms):
        tokens = arm.mean(lambda one: one.prompt_tokens.known + one.output_tokens.known)
        repaired = arm.mean(lambda one: one.repaired)
        if tokens is not None and repaired is not None:
            dots.append((arm.name, tokens / 1000, repaired, slot))
    said = "; ".join(
        f"{name}: {tokens:,.1f} thousand tokens, {repaired:.1f} repaired"
        for name, tokens, repaired, _ in dots
    )
    title = "Tokens against repairs"
    frame = Frame(
        key="plot-tokens",
        title=title,
        description=said,
        x="thousand tokens, prompt and output",
        y="repaired questions",
    )
    return Plot(key="tokens", title=title, svg=scatter_chart(frame, dots))


def _memory(arms: Sequence[Arm]) -> list[Plot]:
    """Growth and reuse, for the methods that remember; none where no method does."""
    growth, reuse = [], []
    for slot, arm in enumerate(arms):
        if not arm.remembers:
            continue
        runs = [memory_growth(stream.records, stream.observations) for stream in arm.streams]
        kept: list[tuple[list[tuple[float, float]], str, str | None]] = [
            ([], "positive", None),
            ([], "negative", "3 3"),
        ]
        shown: list[tuple[float, float]] = []
        for position, states in enumerate(zip(*runs, strict=False)):
            across = position + 1.0
            kept[0][0].append((across, sum(state.positives for state in states) / len(states)))
            kept[1][0].append((across, sum(state.negatives for state in states) / len(states)))
            shown.append((across, sum(state.shown for state in states) / len(states)))
        growth += [
            Series(
                name=f"{arm.name}, {polarity}",
                points=thinned(points),
                slot=slot,
                dash="" if dash is None else dash,
            )
            for points, polarity, dash in kept
            if any(up for _, up in points)
        ]
        reuse.append(Series(name=arm.name, points=thinned(shown), slot=slot))
    if not reuse:
        return []
    plots = []
    for key, title, y, series in (
        ("growth", "Memory growth: observations kept so far", "observations", growth),
        ("reuse", "Memory reuse: entries shown in prompts so far", "entries shown", reuse),
    ):
        frame = Frame(
            key=f"plot-{key}",
            title=title,
            description="At the end of the stream: " + _ends(series, ""),
            x="episodes so far",
            y=y,
            steps=True,
        )
        plots.append(Plot(key=key, title=title, svg=line_chart(frame, series)))
    return plots


def _ends(series: Sequence[Series], unit: str) -> str:
    return "; ".join(f"{one.name} {one.points[-1][1]:.1f}{unit}" for one in series if one.points) or "nothing"
