"""A flow chart: bands between two columns, as wide as what flows."""

from collections.abc import Callable, Mapping

from merit_sql.eval.report.charts import COLOURS, WIDTH, Frame, cut, figure, px
from merit_sql.eval.report.tables import markup

TOP, TALL, GAP = 14, 200, 12
LEFT, RIGHT, THICK = 170, WIDTH - 170, 14


def flow_chart(frame: Frame, flow: Mapping[tuple[str, str], float], slot: Callable[[str], int]) -> str:
    """A band for each (from, to), coloured by where it comes from (`slot`), its size in its title."""
    names = sorted({name for pair in flow for name in pair}, key=lambda name: (slot(name), name))
    total = sum(flow.values()) or 1.0
    before = {name: sum(size for pair, size in flow.items() if pair[0] == name) for name in names}
    after = {name: sum(size for pair, size in flow.items() if pair[1] == name) for name in names}
    tops = (_places(before, total), _places(after, total))
    parts = []
    used = (dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0))
    for (one, other), size in sorted(flow.items()):
        tall = size / total * TALL
        begin, end = tops[0][one] + used[0][one], tops[1][other] + used[1][other]
        used[0][one] += tall
        used[1][other] += tall
        parts.append(
            f"<g><title>{markup(one)} to {markup(other)}: {size:.1f}</title>"
            f'<path class="band c{slot(one) % COLOURS}" d="{_band(begin, end, tall)}"/></g>'
        )
    for sizes, places, across, label, anchor in (
        (before, tops[0], LEFT, LEFT - 8, "end"),
        (after, tops[1], RIGHT - THICK, RIGHT + 8, "start"),
    ):
        for name, top in places.items():
            tall, colour = sizes[name] / total * TALL, slot(name) % COLOURS
            place = f'x="{across}" y="{px(top)}" width="{THICK}" height="{px(tall)}"'
            parts.append(
                f'<rect class="fill c{colour}" {place}/>'
                f'<rect fill="url(#h{colour})" {place}/>'
                f'<text x="{label}" y="{px(top + tall / 2 + 4)}" text-anchor="{anchor}">'
                f"{cut(name)} {sizes[name]:,.1f}</text>"
            )
    rows = max(len(tops[0]), len(tops[1]), 1)
    return figure(frame, "".join(parts), TOP + TALL + GAP * rows + 34)


def _places(sizes: Mapping[str, float], total: float) -> dict[str, float]:
    """The top of each block that has a size, one below the other."""
    places: dict[str, float] = {}
    top = float(TOP)
    for name, size in sizes.items():
        if size:
            places[name] = top
            top += size / total * TALL + GAP
    return places


def _band(begin: float, end: float, tall: float) -> str:
    left, right, middle = LEFT + THICK, RIGHT - THICK, (LEFT + RIGHT) // 2
    one, other, low, lower = (px(value) for value in (begin, end, begin + tall, end + tall))
    return (
        f"M{left} {one}C{middle} {one} {middle} {other} {right} {other}"
        f"V{lower}C{middle} {lower} {middle} {low} {left} {low}z"
    )
