"""The suite `mini`, ready to run: scored as Spider's questions are."""

import hashlib
import json

from merit_sql.databases.catalogue import Catalogue
from merit_sql.eval.datasets import Question, Suite
from merit_sql.eval.spider import SECONDS, Distinct, SpiderEvaluator
from merit_sql.eval.suites import mini_questions
from merit_sql.eval.suites.build import build_mini


def load_mini(*, workers: int = 1, distinct: Distinct = "keep", timeout: float | None = None) -> Suite:
    """The bundled suite, its databases built where they are missing; `timeout` is in seconds a query."""
    items = mini_questions()
    catalogue = Catalogue.from_folder(build_mini(), workers=workers)
    golds = {item["id"]: (item["db_id"], item["query"]) for item in items}
    canonical = json.dumps(items, sort_keys=True, separators=(",", ":"))
    return Suite(
        name="mini",
        digest=hashlib.sha256(canonical.encode("ascii")).hexdigest(),
        questions=tuple(
            Question(
                id=item["id"],
                database_id=item["db_id"],
                question=item["question"],
                evidence=item["evidence"],
                difficulty=item["difficulty"],
            )
            for item in items
        ),
        catalogue=catalogue,
        evaluator=SpiderEvaluator(catalogue, golds, distinct=distinct, timeout=timeout or SECONDS),
    )
