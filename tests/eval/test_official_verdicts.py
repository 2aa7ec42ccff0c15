"""Every official verdict on real systems' predictions: there must be no difference at all."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from merit_sql.eval.bird import Metric
from merit_sql.eval.datasets import Suite, load_suite
from merit_sql.eval.predictions import read_predictions
from merit_sql.eval.spider import Distinct

JOBS = 2


def verdicts(data: Path, name: str) -> dict[str, dict[str, dict[str, float]]]:
    loaded: dict[str, dict[str, dict[str, float]]] = json.loads((data / "predictions" / name).read_text())
    return loaded


def ours(suite: Suite, data: Path, system: str, wanted: dict[str, Any]) -> dict[str, float | None]:
    path = data / "predictions" / suite.name / f"{system}.sql"
    predictions = read_predictions(path, [question.database_id for question in suite.questions])
    with ThreadPoolExecutor(JOBS) as pool:
        judged = pool.map(lambda key: suite.evaluator.judge(int(key), predictions[int(key)]), wanted)
        return {key: judgement.official for key, judgement in zip(wanted, judged, strict=True)}


@pytest.mark.parametrize(("distinct", "mode"), [("keep", "keep_distinct"), ("strip", "strip_distinct")])
def test_spider(merit_data: Path, distinct: Distinct, mode: str) -> None:
    official = verdicts(merit_data, "spider_official_verdicts.json")
    suite = load_suite("spider", merit_data, workers=JOBS, distinct=distinct)
    with suite.catalogue:
        for system, by_mode in official.items():
            wanted = by_mode[mode]
            assert len(wanted) == 972
            assert ours(suite, merit_data, system, wanted) == wanted, system


@pytest.mark.parametrize(("metric", "key"), [("ex", "execution_accuracy"), ("soft-f1", "soft_f1")])
def test_bird(merit_data: Path, metric: Metric, key: str) -> None:
    official = verdicts(merit_data, "bird_superhero_official_verdicts.json")
    suite = load_suite("bird", merit_data, workers=JOBS, metric=metric)
    with suite.catalogue:
        for system, by_metric in official.items():
            wanted = by_metric[key]
            assert len(wanted) == 129
            found = ours(suite, merit_data, system, wanted)
            assert found == pytest.approx(wanted, abs=5e-7, rel=0), system


def test_the_strict_verdict_of_a_system_that_writes_no_placeholder_is_the_official_one(
    merit_data: Path,
) -> None:
    suite = load_suite("spider", merit_data, workers=JOBS)
    path = merit_data / "predictions" / "spider" / "codes-7b-sft.sql"
    predictions = read_predictions(path, [question.database_id for question in suite.questions])
    with suite.catalogue:
        for question in suite.questions[:200]:
            sql = predictions[question.id]
            assert "value" not in sql
            judgement = suite.evaluator.judge(question.id, sql)
            assert judgement.official == judgement.strict
