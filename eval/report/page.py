"""The one page of a report: everything in it, nothing from elsewhere, and all text inert."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib import resources
from string import Template
from typing import Any

from merit_sql.eval.report.against import against_paper
from merit_sql.eval.report.charts import hatchings
from merit_sql.eval.report.costs import streams_table
from merit_sql.eval.report.data import OUTCOMES, documents, script_json
from merit_sql.eval.report.failures import composition_table, flow_table, steps_table
from merit_sql.eval.report.figures import Part
from merit_sql.eval.report.overview import Answer, answers, warnings
from merit_sql.eval.report.plots import Plot, all_plots
from merit_sql.eval.report.sections import accuracy_tables, arms_in, cost_tables, gain_tables
from merit_sql.eval.report.sources import short
from merit_sql.eval.report.tables import Table, as_html, markup


def page(parts: Sequence[Part], *, against: bool = False) -> bytes:
    """The report as UTF-8 HTML; the same parts give the same bytes. `against` adds the paper's figures."""
    arms = arms_in(parts)
    plots = all_plots(arms)
    data = documents(parts)
    sections = [
        ("overview", "Overview", _overview(parts, plots, data)),
        ("accuracy", "Accuracy", _accuracy(parts, plots)),
        ("gains", "Where it gains", _tables(gain_tables(parts))),
        ("failures", "Failures", _failures(parts, plots)),
        ("cost", "Cost", _plot(plots, "tokens") + _tables(cost_tables(parts))),
    ]
    if "growth" in plots:
        sections.append(("memory", "Memory", _pair(plots, "growth", "reuse")))
    if against:
        sections.append(("paper", "Against the paper", _tables(against_paper(parts))))
    sections += [("episodes", "Episodes", _browser()), ("runs", "Runs", _runs(parts))]
    style, script = _asset("report.css"), _asset("report.js")
    names = ", ".join(name for part in parts for name in part.source.names)
    html = Template(_asset("template.html")).substitute(
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'",
        title=markup(f"merit report: {names}"),
        subtitle=markup(" — ".join(_subtitle(part) for part in parts)),
        style=style,
        script=script,
        hatchings=hatchings(),
        links="".join(f'<li><a href="#{key}">{title}</a></li>' for key, title, _ in sections),
        sections="\n".join(
            f'<section id="{key}" aria-labelledby="h-{key}"><h2 id="h-{key}" tabindex="-1">{title}</h2>\n'
            f"{body}</section>"
            for key, title, body in sections
        ),
        data="\n".join(
            f'<script type="application/json" id="{key}">{script_json(document)}</script>'
            for key, document in data.items()
        ),
    )
    return html.encode("utf-8", "xmlcharrefreplace")


def _asset(name: str) -> str:
    return resources.files("merit_sql.eval.report").joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _tables(tables: Iterable[Table]) -> str:
    return "".join(as_html(table) for table in tables)


def _plot(plots: dict[str, Plot], key: str) -> str:
    return f"<figure><figcaption>{markup(plots[key].title)}</figcaption>{plots[key].svg}</figure>\n"


def _pair(plots: dict[str, Plot], *keys: str) -> str:
    return f'<div class="pair">{"".join(_plot(plots, key) for key in keys)}</div>\n'


def _overview(parts: Sequence[Part], plots: dict[str, Plot], data: dict[str, Any]) -> str:
    said = "".join(f"<li>{markup(sentence)}</li>" for sentence in warnings(parts))
    blocks = [f'<ul class="warnings" role="note">{said}</ul>' if said else ""]
    blocks.append(_plot(plots, "accuracy"))
    for part in parts:
        if part.source.label:
            blocks.append(f"<h3>{markup(part.source.label)}: {markup(', '.join(part.source.names))}</h3>")
        blocks.append('<div class="answers">' + "".join(map(_answer, answers(part))) + "</div>")
    blocks.append('<div class="answers">' + _episode_answer(data["index"]) + "</div>")
    return "\n".join(blocks)


def _answer(answer: Answer) -> str:
    details = "".join(f"<li>{markup(one)}</li>" for one in answer.details)
    return (
        f'<article class="answer"><h3>{markup(answer.question)}</h3><p>{markup(answer.answer)}</p>'
        f"{f'<ul>{details}</ul>' if details else ''}</article>"
    )


def _episode_answer(index: dict[str, Any]) -> str:
    """What became of the question at the position that the page opens, in every stream that has it."""
    number, position = index["opened"]
    stream = index["streams"][number]
    question = index["questions"][stream["q"][position]]
    told = []
    for other, one in enumerate(index["streams"]):
        if one["source"] == stream["source"] and stream["q"][position] in one["q"]:
            at = one["q"].index(stream["q"][position])
            revisions = one["n"][at] - 1
            told.append(
                f'<li><a href="#episode/{other}/{at}">{markup(one["name"])}, order {one["order"]}, '
                f"position {at}</a>: "
                f"{markup(OUTCOMES[one['o'][at]])}, {revisions} revision{'' if revisions == 1 else 's'}</li>"
            )
    return (
        f'<article class="answer"><h3>What did episode {position} do?</h3>'
        f"<p>Position {position} (from 0) of {markup(stream['name'])}, order {stream['order']}, is question "
        f"{question[0]} on {markup(question[1])}: {markup(question[2])}</p><ul>{''.join(told)}</ul></article>"
    )


def _accuracy(parts: Sequence[Part], plots: dict[str, Plot]) -> str:
    steps = _tables([steps_table(arms_in(parts))])
    return _tables(accuracy_tables(parts)) + _pair(plots, "learning", "steps") + steps


def _failures(parts: Sequence[Part], plots: dict[str, Plot]) -> str:
    arms = arms_in(parts)
    references = {id(part.reference) for part in parts}
    flows = "".join(
        f"<details{' open' if id(arm) in references else ''}>"
        f"<summary>Flow between types: {markup(arm.name)}</summary>"
        f"{_plot(plots, f'flow-{slot}')}{as_html(flow_table(arm))}</details>"
        for slot, arm in enumerate(arms)
    )
    return _plot(plots, "composition") + _tables([composition_table(arms)]) + flows


def _browser() -> str:
    return _asset("browser.html")


def _runs(parts: Sequence[Part]) -> str:
    blocks = [_tables([streams_table(arms_in(parts))])]
    for part in parts:
        rows = "".join(
            f'<tr><th scope="row">{markup(field)}</th><td>{markup(short(value))}</td></tr>'
            for field, value in sorted(part.source.identity.items())
        )
        names = markup(", ".join(part.source.names))
        blocks.append(
            f'<div class="wide" role="region" aria-label="Settings of {names}" tabindex="0">'
            f'<table class="settings"><caption>{markup(part.source.label)} Settings of {names} '
            f"(run {markup(part.source.run)})</caption>"
            f'<thead><tr><th scope="col">field</th><th scope="col">value</th></tr></thead>'
            f"<tbody>{rows}</tbody></table></div>"
        )
    return "\n".join(blocks)


def _subtitle(part: Part) -> str:
    identity = part.source.identity
    model, scoring = identity.get("model"), identity.get("scoring")
    named = model.get("model") if isinstance(model, dict) else model
    suite = scoring.get("suite") if isinstance(scoring, dict) else scoring
    databases = len({question.database_id for question in part.source.questions})
    label = f"{part.source.label}: " if part.source.label else ""
    return (
        f"{label}{len(part.source.questions):,} questions of {suite} on {databases} "
        f"database{'' if databases == 1 else 's'}, model {named}, K = {identity.get('budget')}, "
        f"run {part.source.run}"
    )
