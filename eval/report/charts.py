"""Charts as inline SVG text: marks, axes and their text alternatives, without styles of their own.

Colours are classes (``c0`` … ``c7``) that the page's style sheet fills in for each theme; a series is told
apart by its dash and its marker too, and a bar's part by its hatching.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from merit_sql.eval.report.tables import markup

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 16, 48
COLOURS = 8
DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4")
MARKS = ("circle", "square", "triangle", "diamond", "cross")
MARKED = 9
"""How many points of a line carry its marker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A named line through (x, y) points; `slot` decides its colour, dash and marker.

    `dash` overrides the slot's.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    slot: int
    dash: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A named value with its interval, None where there is none."""

    name: str
    value: float
    interval: tuple[float, float] | None
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A named stack of (part's name, its size, its slot)."""

    name: str
    parts: tuple[tuple[str, float, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What surrounds a chart's marks.

    `key` makes ids; `title` and `description` are its text alternative. `x` and `y` name the axes, `steps`
    keeps the ticks of x to whole numbers.
    """

    key: str
    title: str
    description: str
    x: str
    y: str = ""
    steps: bool = False


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)


def line_chart(frame: Frame, series: Sequence[Series]) -> str:
    """Lines over a common x, with a legend; both axes begin at 0."""
    xs = [x for one in series for x, _ in one.points]
    ys = [y for one in series for _, y in one.points]
    x_ticks, y_ticks = _ticks(0, max(xs, default=1), whole=frame.steps), _ticks(0, max(ys, default=1))
    x = _Scale(0, max([*xs, 1 if not xs else 0]) or 1, LEFT, WIDTH - RIGHT)
    y = _Scale(0, y_ticks[-1], HEIGHT - BOTTOM, TOP)
    marks = "".join(_line(one, x, y) for one in series)
    axes = _x_axis([one for one in x_ticks if one <= x.high], x, HEIGHT) + _y_axis(y_ticks, y)
    return figure(frame, axes + marks, HEIGHT) + _legend(series)


def dot_chart(frame: Frame, dots: Sequence[Dot]) -> str:
    """A row for each dot, with its interval as a whisker; the axis holds what there is, not 0."""
    left, height = 190, TOP + BOTTOM + 34 * len(dots)
    ends = [end for dot in dots for end in (dot.interval or ()) + (dot.value,)]
    ticks = _ticks(min(ends, default=0), max(ends, default=1))
    x = _Scale(ticks[0], ticks[-1], left, WIDTH - RIGHT)
    parts = [_x_axis(ticks, x, height)]
    for row, dot in enumerate(dots):
        middle = TOP + 17 + 34 * row
        colour = f"c{dot.slot % COLOURS}"
        parts.append(
            f'<text class="label" x="{left - 12}" y="{middle + 4}" text-anchor="end">{cut(dot.name)}</text>'
        )
        if dot.interval is not None:
            low, high = (px(x(end)) for end in dot.interval)
            parts.append(
                f'<path class="line {colour}" '
                f'd="M{low} {middle}H{high}M{low} {middle - 5}v10M{high} {middle - 5}v10"/>'
            )
        parts.append(_mark(dot.slot, x(dot.value), middle, 5))
        above = px(max(left + 20, min(x(dot.value), WIDTH - RIGHT - 20)))
        parts.append(
            f'<text class="value" x="{above}" y="{middle - 9}" text-anchor="middle">{dot.value:.2f}</text>'
        )
    return figure(frame, "".join(parts), height)


def scatter_chart(frame: Frame, dots: Sequence[tuple[str, float, float, int]]) -> str:
    """A marker for each (name, x, y, slot), with a legend; both axes begin at 0."""
    x_ticks = _ticks(0, max([dot[1] for dot in dots], default=1))
    y_ticks = _ticks(0, max([dot[2] for dot in dots], default=1))
    x = _Scale(0, x_ticks[-1], LEFT, WIDTH - RIGHT)
    y = _Scale(0, y_ticks[-1], HEIGHT - BOTTOM, TOP)
    marks = "".join(_mark(slot, x(across), y(up), 6) for _, across, up, slot in dots)
    legend = _legend([Series(name=name, points=(), slot=slot) for name, _, _, slot in dots])
    return figure(frame, _x_axis(x_ticks, x, HEIGHT) + _y_axis(y_ticks, y) + marks, HEIGHT) + legend


def bar_chart(frame: Frame, bars: Sequence[Bar]) -> str:
    """A stacked bar a row, each part hatched in its own way, its size written where it fits."""
    left, height = 230, TOP + BOTTOM + 30 * len(bars)
    largest = max([sum(size for _, size, _ in bar.parts) for bar in bars], default=1)
    ticks = _ticks(0, largest)
    x = _Scale(0, ticks[-1], left, WIDTH - RIGHT)
    parts = [_x_axis(ticks, x, height)]
    for row, bar in enumerate(bars):
        top, begin = TOP + 4 + 30 * row, 0.0
        parts.append(
            f'<text class="label" x="{left - 12}" y="{top + 15}" text-anchor="end">{cut(bar.name)}</text>'
        )
        for name, size, slot in bar.parts:
            across, wide = x(begin), x(begin + size) - x(begin)
            place = f'x="{px(across)}" y="{top}" width="{px(wide)}" height="22"'
            parts.append(
                f"<g><title>{markup(bar.name)}: {markup(name)} {size:.1f}</title>"
                f'<rect class="fill c{slot % COLOURS}" {place}/>'
                f'<rect fill="url(#h{slot % COLOURS})" {place}/></g>'
            )
            if wide > 34:
                parts.append(
                    f'<text class="inside" x="{px(across + wide / 2)}" y="{top + 15}" text-anchor="middle">'
                    f"{size:.{0 if size == round(size) else 1}f}</text>"
                )
            begin += size
    kinds = dict.fromkeys((name, slot) for bar in bars for name, _, slot in bar.parts)
    items = "".join(f"<li>{_swatch(slot)}{markup(name)}</li>" for name, slot in kinds)
    return figure(frame, "".join(parts), height) + f'<ul class="legend">{items}</ul>'


def hatchings() -> str:
    """The patterns that bars refer to; once a page."""
    paths = (
        "",
        "M0 8L8 0",
        "M0 0L8 8",
        "M4 0V8",
        "M0 4H8",
        "M0 8L8 0M0 0L8 8",
        "M4 0V8M0 4H8",
        "M2 2h1v1h-1z",
    )
    patterns = "".join(
        f'<pattern id="h{index}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<path class="hatch" d="{path or "M0 0"}"/></pattern>'
        for index, path in enumerate(paths)
    )
    return f'<svg class="defs" width="0" height="0" aria-hidden="true"><defs>{patterns}</defs></svg>'


def thinned(points: Sequence[tuple[float, float]], most: int = 240) -> tuple[tuple[float, float], ...]:
    """At most about `most` of the points, evenly, first and last kept."""
    step = max(1, math.ceil(len(points) / most))
    kept = list(points[::step])
    if points and kept[-1] != points[-1]:
        kept.append(points[-1])
    return tuple(kept)


def figure(frame: Frame, body: str, height: int) -> str:
    """The SVG element around a chart's marks, with its text alternative and the axes' names."""
    key = markup(frame.key)
    words = (
        f'<text class="axis" x="{WIDTH - RIGHT}" y="{height - 8}" text-anchor="end">{markup(frame.x)}</text>'
    )
    if frame.y:
        words += (
            f'<text class="axis" x="14" y="{TOP}" text-anchor="end" transform="rotate(-90 14 {TOP})">'
            f"{markup(frame.y)}</text>"
        )
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {WIDTH} {height}" '
        f'aria-labelledby="{key}-title {key}-desc"><title id="{key}-title">{markup(frame.title)}</title>'
        f'<desc id="{key}-desc">{markup(frame.description)}</desc>{body}{words}</svg>'
    )


def _line(series: Series, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    if not series.points:
        return ""
    path = "L".join(f"{px(x(across))} {px(y(up))}" for across, up in series.points)
    dash = series.dash if series.dash is not None else DASHES[series.slot % len(DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    every = max(1, math.ceil(len(series.points) / MARKED))
    marks = "".join(
        _mark(series.slot, x(across), y(up), 4) for across, up in series.points[every - 1 :: every]
    )
    return f'<path class="line c{series.slot % COLOURS}"{dashed} d="M{path}"/>{marks}'


def _mark(slot: int, x: float, y: float, size: float) -> str:
    kind = MARKS[slot % len(MARKS)]
    stroke = f"l{2 * size} {2 * size}"
    arc = f"a{size} {size} 0 1 0"
    shape = {
        "circle": f"M{px(x - size)} {px(y)}{arc} {2 * size} 0{arc} {-2 * size} 0z",
        "square": f"M{px(x - size)} {px(y - size)}h{2 * size}v{2 * size}h{-2 * size}z",
        "triangle": f"M{px(x)} {px(y - size)}l{size} {2 * size}h{-2 * size}z",
        "diamond": f"M{px(x)} {px(y - size)}l{size} {size}l{-size} {size}l{-size} {-size}z",
        "cross": f"M{px(x - size)} {px(y - size)}{stroke}m0 {-2 * size}l{-2 * size} {2 * size}",
    }[kind]
    return f'<path class="{"line" if kind == "cross" else "fill"} c{slot % COLOURS}" d="{shape}"/>'


def _legend(series: Sequence[Series]) -> str:
    items = []
    for one in series:
        dash = one.dash if one.dash is not None else DASHES[one.slot % len(DASHES)]
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        items.append(
            '<li><svg class="key" viewBox="0 0 34 14" aria-hidden="true">'
            f'<path class="line c{one.slot % COLOURS}"{dashed} d="M1 7H33"/>{_mark(one.slot, 17, 7, 4)}</svg>'
            f"{markup(one.name)}</li>"
        )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _swatch(slot: int) -> str:
    slot %= COLOURS
    return (
        '<svg class="key" viewBox="0 0 34 14" aria-hidden="true">'
        f'<rect class="fill c{slot}" width="34" height="14"/>'
        f'<rect fill="url(#h{slot})" width="34" height="14"/></svg>'
    )


def _x_axis(ticks: Sequence[float], x: Callable[[float], float], height: int) -> str:
    bottom = height - BOTTOM
    return "".join(
        f'<path class="grid" d="M{px(x(tick))} {TOP}V{bottom}"/>'
        f'<text class="tick" x="{px(x(tick))}" y="{bottom + 16}" text-anchor="middle">{_tick(tick)}</text>'
        for tick in ticks
    )


def _y_axis(ticks: Sequence[float], y: Callable[[float], float]) -> str:
    return "".join(
        f'<path class="grid" d="M{LEFT} {px(y(tick))}H{WIDTH - RIGHT}"/>'
        f'<text class="tick" x="{LEFT - 8}" y="{px(y(tick) + 4)}" text-anchor="end">{_tick(tick)}</text>'
        for tick in ticks
    )


def _ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Round numbers, about six, from at most `low` to at least `high`."""
    if high <= low:
        high = low + 1
    rough = (high - low) / 6
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    if whole:
        step = max(1, math.ceil(step))
    return list(_steps(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9), step))


def _steps(first: int, last: int, step: float) -> Iterator[float]:
    for index in range(first, last + 1):
        yield round(index * step, 10)


def _tick(value: float) -> str:
    return f"{value:,.10f}".rstrip("0").rstrip(".")


def px(value: float) -> str:
    """A length in the drawing, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")


def cut(name: str) -> str:
    """A name as inert text, cut where a chart has no room for it."""
    return markup(name if len(name) <= 30 else name[:29] + "…")
