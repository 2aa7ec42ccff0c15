"""The suites that ship with the product: `mini`, databases and questions of our own making."""

import json
from importlib.resources import files
from typing import TypedDict


class MiniQuestion(TypedDict):
    """One question of the suite `mini`, as `questions.json` holds it.

    `id` is its 0-based place in the file; `evidence` is empty where the question needs none;
    `difficulty` is easy, medium, hard or extra; `query` is the gold, in SQLite's dialect.
    """

    id: int
    db_id: str
    question: str
    evidence: str
    difficulty: str
    query: str


def mini_questions() -> list[MiniQuestion]:
    """The questions of the suite `mini`, in its order."""
    text = files(__name__).joinpath("mini", "questions.json").read_text(encoding="utf-8")
    questions: list[MiniQuestion] = json.loads(text)
    return questions
