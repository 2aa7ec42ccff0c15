"""The published tables follow from our definitions: N, initially right, repairs and steps give the rest."""

import pytest

from merit_sql.domain.failure import FailureKind
from merit_sql.eval.metrics import Cost, Metrics
from merit_sql.eval.paper import PaperMethod, paper
from merit_sql.graph.method import METHODS

ROWS = [
    (dataset, method)
    for dataset in ("spider", "bird")
    for method in ("iterative", "reflexion", "dynamic_rag", "merit")
]


def totals(questions: int, right: int, *, repaired: int, generations: int, reflections: int = 0) -> Metrics:
    """A stream's figures from its counts."""
    return Metrics(
        questions=questions,
        correct=right + repaired,
        official=float(right + repaired),
        initially_wrong=questions - right,
        repaired=repaired,
        regressions=0,
        generations=generations,
        oscillating=0,
        executions=questions + generations,
        initial=Cost(calls=questions),
        repair=Cost(calls=generations),
        reflection=Cost(calls=reflections),
    )


def published(dataset: str, method: str) -> PaperMethod:
    return paper().datasets[dataset].methods[method]


def test_calls_of_iterative_on_spider() -> None:
    # 1,034 initial predictions, 425 of them wrong, 6.082 repair generations for each: 2,584.85, so 2,585.
    metrics = totals(1034, 609, repaired=77, generations=2585)
    assert metrics.calls == 1034 + 2585 == 3619 == published("spider", "iterative").calls
    assert metrics.steps == pytest.approx(6.082, abs=0.0005)
    assert metrics.execution_accuracy == pytest.approx(0.6634, abs=0.00005)


def test_calls_of_reflexion_on_spider() -> None:
    # 425 wrong questions with 5.821 generations each: 2,473.9, so 2,474. Each of the 425 + 2,474 attempts at
    # these questions failed, but for the 98 that repaired one, and every failed attempt, the last one of an
    # episode included, is reflected on: 425 + 2,474 - 98 = 2,801. With the 1,034 initial calls: 6,309.
    reflections = 425 + 2474 - 98
    metrics = totals(1034, 609, repaired=98, generations=2474, reflections=reflections)
    assert metrics.calls == 1034 + 2474 + 2801 == 6309 == published("spider", "reflexion").calls
    assert metrics.steps == pytest.approx(5.821, abs=0.0005)
    assert metrics.execution_accuracy == pytest.approx(0.6838, abs=0.00005)


def test_calls_of_both_on_bird() -> None:
    # 945 wrong of 1,534. Iterative: 6.238 * 945 = 5,894.9. Reflexion: calls are 1,534 + 2 g + 945 - 197, and
    # g = 5,643 generations give 13,568; 5,643 / 945 = 5.9714.
    iterative = totals(1534, 589, repaired=137, generations=5895)
    assert iterative.calls == 1534 + 5895 == 7429 == published("bird", "iterative").calls
    reflexion = totals(1534, 589, repaired=197, generations=5643, reflections=945 + 5643 - 197)
    assert reflexion.calls == 1534 + 5643 + 6391 == 13568 == published("bird", "reflexion").calls
    assert reflexion.steps == pytest.approx(5.971, abs=0.0005)
    assert reflexion.execution_accuracy == pytest.approx(0.5124, abs=0.00005)


@pytest.mark.parametrize(("dataset", "method"), ROWS)
def test_every_row_of_the_table_agrees_within_rounding(dataset: str, method: str) -> None:
    about, row = paper().datasets[dataset], published(dataset, method)
    wrong = about.questions - about.initially_right
    generations = row.steps * wrong
    reflections = wrong + generations - row.repaired if METHODS[method].reflects else 0
    # Steps are printed to 0.0005, repairs to 0.05, calls to 0.5.
    slack = 0.0005 * wrong * (2 if reflections else 1) + 0.05 + 0.5
    assert about.questions + generations + reflections == pytest.approx(row.calls, abs=slack)
    accuracy = 100 * (about.initially_right + row.repaired) / about.questions
    assert accuracy == pytest.approx(row.ex, abs=0.005 + 100 * 0.05 / about.questions)
    assert METHODS[method].name == method


@pytest.mark.parametrize("dataset", ["spider", "bird"])
def test_the_paired_differences_are_those_of_the_table(dataset: str) -> None:
    about = paper().datasets[dataset]
    for other in ("iterative", "reflexion", "dynamic_rag"):
        paired = about.paired[other]
        difference = about.methods["merit"].ex - about.methods[other].ex
        assert paired.difference == pytest.approx(difference, abs=0.0101)
        assert paired.low < paired.difference < paired.high
    assert about.paired.keys() <= METHODS.keys() and about.ablations.keys() <= METHODS.keys()


@pytest.mark.parametrize("dataset", ["spider", "bird"])
def test_the_initial_failures_make_a_whole(dataset: str) -> None:
    about = paper().datasets[dataset]
    assert sum(about.initial_failures.values()) == pytest.approx(100, abs=0.015)
    assert about.initial_failures.keys() - {"other"} < set(FailureKind)
    # A share of the initially wrong is a whole number of them: 360 and 52 of 425, 548 and 318 of 945.
    for share in about.initial_failures.values():
        count = round(share * about.initially_wrong / 100)
        assert 100 * count / about.initially_wrong == pytest.approx(share, abs=0.005001)


def test_figures_read_from_the_publication() -> None:
    spider, bird = paper().datasets["spider"], paper().datasets["bird"]
    assert (spider.questions, spider.initially_wrong, bird.questions, bird.initially_wrong) == (
        1034,
        425,
        1534,
        945,
    )
    assert published("bird", "reflexion").tokens == 22.407
    assert published("spider", "merit").oscillation == 31.95
    assert (bird.paired["reflexion"].low, bird.paired["reflexion"].high) == (-4.15, -1.46)
    assert (spider.classifier.accuracy, bird.classifier.macro_f1) == (48.71, 0.355)
    no_bm25, merit = spider.accuracy("no_bm25"), bird.accuracy("merit")
    assert no_bm25 is not None and (no_bm25.ex, no_bm25.ex_sd) == (70.37, 0.20)
    assert merit is not None and (merit.ex, merit.ex_sd) == (48.44, 0.46)
    assert spider.accuracy("merit_type_reliability") is None
    assert paper().setup.model == "Qwen/Qwen2.5-7B-Instruct"
