"""Run folders written by hand, for what reads them."""

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from merit_sql.domain.episode import AttemptDict, EpisodeRecord, MemoryUseDict
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.memory import Observation, Provenance, Transition
from merit_sql.domain.sql import delta
from merit_sql.domain.status import Polarity, Regime, Status
from merit_sql.eval.datasets import Question
from merit_sql.eval.ledger import record_to_dict
from merit_sql.eval.runs import write_questions
from merit_sql.stores.records import observation_to_dict

RightAt = Callable[[str, int, int], int | None]


def question(number: int, **changes: Any) -> Question:
    """Question `number`: on one of three databases, easy or hard by turns."""
    base: dict[str, Any] = {
        "id": number,
        "database_id": f"db_{number % 3}",
        "question": f"How many things has number {number}?",
        "evidence": f"things of {number}",
        "difficulty": ("easy", "hard")[number % 2],
    }
    return Question(**{**base, **changes})


def identity_of(methods: Sequence[str], orders: Sequence[int], budget: int) -> dict[str, Any]:
    """A manifest's identity, as far as a report reads it."""
    policy = {"scope": "any"}
    return {
        "scoring": {"suite": "spider", "dataset": "d1"},
        "selection": {"databases": None, "limit": None},
        "methods": {name: {"name": name, "policy": policy if "merit" in name else None} for name in methods},
        "orders": list(orders),
        "budget": budget,
        "model": {"kind": "scripted", "model": "small", "revision": "r1", "quantisation": "Q8_0"},
        "encoder": {"id": "hashing", "revision": "1"} if any("merit" in name for name in methods) else None,
        "prompts": {"budget": 4096, "templates": {"cached": {"repair": "aa"}}},
        "initial": "generate",
        "regime": "denotation_confirmed",
    }


@dataclass
class Stream:
    """Writes one stream's episodes; those of a method named after merit keep and show memories."""

    attempt: Callable[..., AttemptDict]
    method: str
    order: int
    budget: int
    kept: list[Observation] = field(default_factory=list)

    def line(self, position: int, one: Question, right_at: int | None) -> str:
        last = self.budget if right_at is None else right_at
        attempts = [self._attempt(step, position, one, right_at) for step in range(last + 1)]
        observation = self._observation(position, one, attempts, right_at)
        record = EpisodeRecord(
            run="r",
            method=self.method,
            regime=Regime.DENOTATION_CONFIRMED,
            query_id=str(one.id),
            database_id=one.database_id,
            position=position,
            status=Status(attempts[-1]["status"]),
            confirmed_by=attempts[-1]["confirmed_by"],
            sql=attempts[-1]["sql"],
            attempts=attempts,
            reflections=[],
            memory_ids=attempts[-1]["memory_ids"],
        )
        kept = None if observation is None else observation_to_dict(observation)
        return json.dumps({"record": record_to_dict(record), "observation": kept}) + "\n"

    def _attempt(self, step: int, position: int, one: Question, right_at: int | None) -> AttemptDict:
        sql = f"SELECT name, c{min(step, 2)} FROM t{one.id} WHERE a = 1"
        changes: dict[str, Any] = {"memories": self._memories(position)} if step else {"usage": None}
        changes["memory_ids"] = [use["id"] for use in changes.get("memories", [])]
        if step == right_at:
            changes |= {
                "status": "CORRECT", "failure": None, "opinion": "confirmed", "official": 1.0, "strict": 1,
                "confirmed_by": "denotation",
            }  # fmt: skip
        elif one.id % 4 == 3:
            error = f"no such column: c{step}"
            changes |= {
                "status": "EXECUTION_ERROR",
                "error": error,
                "failure": {"type": "Schema Linking", "subtype": "Missing Column", "decided_by": error},
            }
        return self.attempt(step, sql, **{"strict": 0, **changes})

    def _memories(self, position: int) -> list[MemoryUseDict]:
        return [
            MemoryUseDict(
                id=one.entry_id,
                polarity=one.provenance.polarity.value,
                score=0.75,
                dense=1.0,
                lexical=0.0,
                same_type=True,
                sources=[
                    {
                        "query_id": one.provenance.query_id,
                        "database_id": one.provenance.database_id,
                        "position": one.provenance.position,
                        "polarity": one.provenance.polarity.value,
                    }
                ],
            )
            for one in self.kept[-2:]
            if one.provenance.position < position
        ]

    def _observation(
        self, position: int, one: Question, attempts: Sequence[AttemptDict], right_at: int | None
    ) -> Observation | None:
        if "merit" not in self.method or right_at == 0 or len(attempts) < 2:
            return None
        before, after = attempts[-2:]
        told = before if right_at is not None else after
        polarity = Polarity.NEGATIVE if right_at is None else Polarity.POSITIVE
        observation = Observation.of(
            Provenance(
                run="r",
                method=self.method,
                regime=Regime.DENOTATION_CONFIRMED,
                query_id=str(one.id),
                database_id=one.database_id,
                position=position,
                step=after["step"],
                retrieved_ids=(),
                polarity=polarity,
            ),
            Transition(
                question=one.question,
                schema="",
                database_id=one.database_id,
                error_type=FailureKind((told["failure"] or {"type": "Unknown"})["type"]),
                failed_sql=told["sql"],
                status=Status(told["status"]),
                db_error=told["error"],
                sql_delta=delta(before["sql"], after["sql"]),
                outcome=Status(after["status"]),
            ),
        )
        self.kept.append(observation)
        return observation


def default_right_at(method: str, order: int, number: int) -> int | None:
    """Every third right at first; of the others merit repairs those of even number, others every fourth."""
    if number % 3 == 0:
        return 0
    return 1 if number % (2 if "merit" in method else 4) == 0 else None


@pytest.fixture(scope="session")
def make_run(attempt: Callable[..., AttemptDict]) -> Callable[..., Path]:
    """Write a run folder; `finished` counts the episodes of a (method, order), `identity` overrides."""

    def make(
        folder: Path,
        *,
        methods: Sequence[str] = ("iterative", "merit"),
        orders: Sequence[int] = (0,),
        questions: Iterable[Question] | int = 12,
        budget: int = 2,
        right_at: RightAt = default_right_at,
        finished: Mapping[tuple[str, int], int] | None = None,
        identity: Mapping[str, Any] | None = None,
    ) -> Path:
        asked = [question(one) for one in range(questions)] if isinstance(questions, int) else list(questions)
        folder.mkdir(parents=True)
        whole = {**identity_of(methods, orders, budget), **(identity or {})}
        document = {"format": 1, "run": "0123456789ab", "identity": whole}
        (folder / "manifest.json").write_text(json.dumps(document))
        write_questions(folder, asked, {one.database_id: f"TABLE of {one.database_id}" for one in asked})
        usage = {"prompt_tokens": 90, "output_tokens": 20}
        first = "SELECT name, c0 FROM t{} WHERE a = 1"
        rows = [{"id": one.id, "sql": first.format(one.id), "usage": usage} for one in asked]
        (folder / "initial.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        for method in methods:
            for order in orders:
                stream = Stream(attempt=attempt, method=method, order=order, budget=budget)
                shuffled = list(asked)
                random.Random(order).shuffle(shuffled)
                done = len(asked) if finished is None else finished.get((method, order), 0)
                lines = [
                    stream.line(position, one, right_at(method, order, one.id))
                    for position, one in enumerate(shuffled[:done])
                ]
                (folder / f"{method}-{order}").mkdir()
                (folder / f"{method}-{order}/episodes.jsonl").write_text("".join(lines))
                row = {"seconds": 2.0, "model_seconds": 1.5, "encoder_seconds": 0.25, "real_calls": 1}
                timings = "".join(json.dumps(row) + "\n" for _ in lines)
                (folder / f"{method}-{order}/timings.jsonl").write_text(timings)
        return folder

    return make
