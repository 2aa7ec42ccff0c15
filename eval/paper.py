"""The figures that the method's authors published, for comparison with a run's own."""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

RESULTS = "paper/results.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperSetup:
    """What the published runs were made with; `revision` of the model is abbreviated, as printed."""

    model: str
    model_revision: str
    quantisation: str
    encoder: str
    encoder_revision: str
    budget: int
    orders: tuple[int, ...]
    resamples: int
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperAccuracy:
    """Execution accuracy × 100: the mean over the orders, and the sample standard deviation."""

    ex: float
    ex_sd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperMethod:
    """One row of the main table.

    `repaired`, `steps` (repair generations per initially wrong question) and `calls` are means over the
    orders, `oscillation` a percentage of all questions, `tokens` millions of prompt and output tokens.
    """

    ex: float
    ex_sd: float
    repaired: float
    steps: float
    oscillation: float
    tokens: float
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperDifference:
    """Merit minus another method, in percentage points, with its paired 95 % interval."""

    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperClassifier:
    """The failure classifier against annotators, weighted to the population: accuracy × 100, macro-F1."""

    accuracy: float
    macro_f1: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperDataset:
    """What was published about one dataset.

    `methods`, `ablations` and `paired` are by method name (`METHODS`); `ablations` repeats the full method.
    `initial_failures` are percentages of the initially wrong questions by failure type, the types that the
    authors did not print apart as ``other``.
    """

    title: str
    questions: int
    initially_right: int
    databases: int
    methods: Mapping[str, PaperMethod]
    ablations: Mapping[str, PaperAccuracy]
    paired: Mapping[str, PaperDifference]
    initial_failures: Mapping[str, float]
    classifier: PaperClassifier

    @property
    def initially_wrong(self) -> int:
        """Questions that a repair could win."""
        return self.questions - self.initially_right

    def accuracy(self, method: str) -> PaperAccuracy | None:
        """A method's accuracy from either table; None for one that the authors gave no accuracy of."""
        row = self.methods.get(method) or self.ablations.get(method)
        return None if row is None else PaperAccuracy(ex=row.ex, ex_sd=row.ex_sd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """All published figures; `datasets` by suite name, ``spider`` and ``bird``."""

    setup: PaperSetup
    datasets: Mapping[str, PaperDataset]


@functools.cache
def paper() -> Paper:
    """The figures that ship with the package."""
    text = resources.files("merit_sql.eval").joinpath(RESULTS).read_text(encoding="utf-8")
    document = tomllib.loads(text)
    setup = document["setup"]
    return Paper(
        setup=PaperSetup(**{**setup, "orders": tuple(setup["orders"])}),
        datasets={name: _dataset(table) for name, table in document["datasets"].items()},
    )


def _dataset(table: dict[str, Any]) -> PaperDataset:
    return PaperDataset(
        **{
            **table,
            "methods": {name: PaperMethod(**row) for name, row in table["methods"].items()},
            "ablations": {name: PaperAccuracy(**row) for name, row in table["ablations"].items()},
            "paired": {name: PaperDifference(**row) for name, row in table["paired"].items()},
            "classifier": PaperClassifier(**table["classifier"]),
        }
    )
