"""A run beside the figures that the method's authors published, and what keeps the two from comparing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from merit_sql.eval.metrics import Metrics
from merit_sql.eval.paper import PaperDataset, PaperSetup, paper
from merit_sql.eval.report.content import interval
from merit_sql.eval.report.failures import composition, first_type
from merit_sql.eval.report.figures import Arm, Part, percentage
from merit_sql.eval.report.sources import Source
from merit_sql.eval.report.tables import Cell, Column, Interval, Number, Spread, Table, spread_column, text

REFERENCE = "merit"
"""The method whose differences to the others were published."""


def against_paper(parts: Sequence[Part]) -> list[Table]:
    """The paper's figures beside each source's; those of all its suites for a source of another suite."""
    known = paper()
    tables = []
    for part in parts:
        suite = _suite(part.source)
        names = [suite] if suite in known.datasets else list(known.datasets)
        for name in names:
            dataset = known.datasets[name]
            ending = f"{name}{'-' + part.source.label if part.source.label else ''}"
            tables += [
                _settings(part, known.setup, dataset, ending),
                _results(part, dataset, ending),
                _differences(part, dataset, ending),
                _failures(part, dataset, ending),
            ]
    return tables


def _suite(source: Source) -> str:
    return str(_at(source.identity, "scoring", "suite"))


def _title(what: str, part: Part, dataset: PaperDataset) -> str:
    label = f" · {part.source.label}" if part.source.label else ""
    return f"Against the paper, {dataset.title}: {what}{label}"


def _settings(part: Part, setup: PaperSetup, dataset: PaperDataset, ending: str) -> Table:
    rows = [
        (what, theirs, ours, "same" if same else "DIFFERS")
        for what, theirs, ours, same in _compared(part, setup, dataset)
    ]
    notes = [
        "The prompts' wording is not the authors', whatever the rows say.",
        "The paper's ± of iterative over orders can only be inference noise: with recorded replies it is 0 "
        "here.",
    ]
    if paper().datasets.get(_suite(part.source)) is not dataset:
        notes.insert(0, f"The authors published no figures for the suite {_suite(part.source)}.")
    if any(row[3] == "DIFFERS" for row in rows):
        notes.insert(0, "Where a row differs, the figures below stand beside each other and do not compare.")
    return Table(
        name=f"paper-settings-{ending}",
        title=_title("what differs", part, dataset),
        columns=(text("setting"), text("paper"), text("this run"), text("the same?")),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _compared(part: Part, setup: PaperSetup, dataset: PaperDataset) -> Iterator[tuple[str, str, str, bool]]:
    """(setting, the paper's, the run's, whether they are the same)."""
    identity = part.source.identity
    model = _mapping(identity, "model")
    name, revision = str(model.get("model")), str(model.get("revision"))
    yield "model", setup.model, name, _tail(name) == _tail(setup.model)
    yield "model revision", setup.model_revision, revision, revision.startswith(setup.model_revision)
    quantisation = model.get("quantisation") or "none said"
    yield "quantisation", setup.quantisation, str(quantisation), quantisation == setup.quantisation
    encoder = _mapping(identity, "encoder")
    named = str(encoder.get("id") or "none needed")
    yield "encoder", setup.encoder, named, named == setup.encoder
    revision = str(encoder.get("revision") or "none needed")
    yield "encoder revision", setup.encoder_revision, revision, revision == setup.encoder_revision
    suite, count = _suite(part.source), len(part.source.questions)
    same_suite = paper().datasets.get(suite) is dataset
    yield "dataset", dataset.title, suite, same_suite
    yield "questions", f"{dataset.questions:,}", f"{count:,}", same_suite and dataset.questions == count
    databases = len({question.database_id for question in part.source.questions})
    present = f"{databases} of {dataset.databases}" if same_suite else f"{databases}, of another suite"
    yield "databases present", str(dataset.databases), present, same_suite and databases == dataset.databases
    finished = len({order for arm in part.arms if not arm.partial for order in arm.orders})
    orders = ", ".join(map(str, sorted({order for arm in part.arms for order in arm.orders})))
    every = all(arm.orders == setup.orders and not arm.partial for arm in part.arms)
    shown = ", ".join(map(str, setup.orders))
    yield (
        "orders",
        f"{shown}, every method",
        orders + (", every method" if every else f" ({finished} finished in some method)"),
        every,
    )
    budget = identity.get("budget")
    yield "revisions K", str(setup.budget), str(budget), budget == setup.budget
    regime = str(identity.get("regime"))
    yield "regime", "denotation_confirmed", regime, regime == "denotation_confirmed"
    right = _initially_right(part)
    theirs = percentage(dataset.initially_right / dataset.questions) or 0.0
    ours = "none" if right is None else f"{right:.2f} %"
    yield "initially right", f"{theirs:.2f} %", ours, ours == f"{theirs:.2f} %"


def _initially_right(part: Part) -> float | None:
    arm = part.reference
    return arm.mean(
        lambda one: percentage(1 - one.initially_wrong / one.questions) if one.questions else None
    )


def _results(part: Part, dataset: PaperDataset, ending: str) -> Table:
    figures = ("repaired, % of wrong", "steps", "osc. of all %", "tokens a question", "calls a question")
    pairs = [(Column(name=f"{name}, paper"), spread_column(f"{name}, here")) for name in figures]
    columns = (
        text("method"),
        *map(spread_column, ("EX paper", "EX strict here", "EX official here")),
        *(column for pair in pairs for column in pair),
    )
    arms = {arm.method: arm for arm in part.arms}
    published = dict.fromkeys([*dataset.methods, *dataset.ablations])
    names = [*published, *(name for name in arms if name not in published)]
    rows = [(name, *_result(dataset, name, arms.get(name))) for name in names]
    return Table(
        name=f"paper-results-{ending}",
        title=_title("results", part, dataset),
        columns=columns,
        rows=tuple(rows),
        notes=(
            "Counts are given per question, since the numbers of questions need not agree: the paper's are "
            f"its totals / {dataset.questions:,}, its repairs / {dataset.initially_wrong:,} initially wrong.",
        ),
    )


def _result(dataset: PaperDataset, name: str, arm: Arm | None) -> list[Cell]:
    accuracy, row = dataset.accuracy(name), dataset.methods.get(name)
    published: list[Number | None] = [None] * 5
    if row is not None:
        published = [
            Number(value=100 * row.repaired / dataset.initially_wrong, decimals=2),
            Number(value=row.steps, decimals=3),
            Number(value=row.oscillation, decimals=2),
            Number(value=row.tokens * 1e6 / dataset.questions, decimals=0),
            Number(value=row.calls / dataset.questions, decimals=2),
        ]
    cells: list[Cell] = [
        None if accuracy is None else Spread(mean=accuracy.ex, deviation=accuracy.ex_sd),
        _here(arm, lambda one: percentage(one.execution_accuracy)),
        _here(arm, lambda one: percentage(one.official_accuracy)),
    ]
    unknown = arm is not None and any(
        one.prompt_tokens.unknown or one.output_tokens.unknown for one in arm.metrics
    )
    ours = [
        _here(arm, lambda one: 100 * one.repaired / one.initially_wrong if one.initially_wrong else None),
        _here(arm, lambda one: one.steps, decimals=3),
        _here(arm, lambda one: percentage(one.oscillation)),
        _here(arm, _tokens_a_question, decimals=0, partial=unknown),
        _here(arm, lambda one: one.calls / one.questions if one.questions else None),
    ]
    for theirs, mine in zip(published, ours, strict=True):
        cells += [theirs, mine]
    return cells


def _here(
    arm: Arm | None,
    figure: Callable[[Metrics], float | None],
    *,
    decimals: int = 2,
    partial: bool = False,
) -> Spread | None:
    return None if arm is None else arm.spread(figure, decimals=decimals, partial=partial)


def _tokens_a_question(metrics: Metrics) -> float | None:
    known = metrics.prompt_tokens.known + metrics.output_tokens.known
    return known / metrics.questions if metrics.questions else None


def _differences(part: Part, dataset: PaperDataset, ending: str) -> Table:
    ours = {one.theirs.method: one for one in part.comparisons if one.ours.method == REFERENCE}
    rows: list[tuple[Cell, ...]] = []
    for name, published in dataset.paired.items():
        found = ours.get(name)
        rows.append(
            (
                f"{REFERENCE} − {name}",
                Number(value=published.difference, decimals=2, signed=True),
                Interval(low=published.low, high=published.high),
                None if found is None else Number(value=found.by_query.value, decimals=2, signed=True),
                None if found is None else interval(found.by_query),
            )
        )
    return Table(
        name=f"paper-differences-{ending}",
        title=_title("paired differences, points", part, dataset),
        columns=(
            text("difference"),
            Column(name="paper"),
            Column(name="paper, 95 %", kind="interval"),
            Column(name="here"),
            Column(name="here, 95 %", kind="interval"),
        ),
        rows=tuple(rows),
    )


def _failures(part: Part, dataset: PaperDataset, ending: str) -> Table:
    counts = composition(part.reference, first_type)
    total = sum(counts.values())
    named = [kind for kind in dataset.initial_failures if kind in counts or kind != "other"]
    other = sum(size for kind, size in counts.items() if kind not in dataset.initial_failures)
    rows: list[tuple[Cell, ...]] = []
    for kind in [*(one for one in named if one != "other"), "other"]:
        size = other if kind == "other" else counts.get(kind, 0.0)
        rows.append(
            (
                kind,
                Number(value=dataset.initial_failures[kind], decimals=2),
                Number(value=100 * size / total, decimals=2) if total else None,
            )
        )
    return Table(
        name=f"paper-failures-{ending}",
        title=_title("initial failures, %", part, dataset),
        columns=(text("failure type"), Column(name="paper"), Column(name="here")),
        rows=tuple(rows),
    )


def _at(identity: Mapping[str, Any], *keys: str) -> object:
    value: object = identity
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _mapping(identity: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = identity.get(key)
    return value if isinstance(value, Mapping) else {}


def _tail(name: str) -> str:
    return name.rsplit("/", 1)[-1].lower()
