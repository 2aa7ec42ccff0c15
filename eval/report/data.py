"""What the page's episode browser reads: a small index, and the episodes in chunks, parsed when opened.

Texts repeat a great deal between attempts, methods and orders, so a chunk holds all episodes of a few
questions, and its texts once.
"""

import json
import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from merit_sql.domain.episode import AttemptDict, EpisodeRecord, MemoryUseDict, UsageDict
from merit_sql.domain.memory import Observation
from merit_sql.eval.breakdowns import right
from merit_sql.eval.datasets import Question
from merit_sql.eval.report.failures import first_type
from merit_sql.eval.report.figures import Part
from merit_sql.eval.runs import LoadedStream

EPISODES_A_CHUNK = 128
ASKED_FOR = 17
"""The position that the page opens where nothing else was asked for, or the last one before it."""

OUTCOMES = ("right at first", "repaired", "unresolved", "right at first, wrong in the end")
"""What became of an episode; the browser's filter has them in this order."""

KeyT = TypeVar("KeyT", bound=Hashable)


class Pool(Generic[KeyT]):
    """Values by number, each kept once, in order of first use."""

    def __init__(self) -> None:
        """Begin empty."""
        self._numbers: dict[KeyT, int] = {}

    def number(self, value: KeyT) -> int:
        """The number of `value`, a new one if it is new."""
        return self._numbers.setdefault(value, len(self._numbers))

    def values(self) -> list[KeyT]:
        """All values by number."""
        return list(self._numbers)


def outcome(record: EpisodeRecord) -> int:
    """The place in `OUTCOMES` of what became of an episode."""
    return {(True, True): 0, (False, True): 1, (False, False): 2, (True, False): 3}[
        right(record, 0), right(record)
    ]


def documents(parts: Sequence[Part]) -> dict[str, Any]:
    """The page's data by element id, JSON-able: ``index``, ``schemas``, and ``chunk-0`` … .

    The index holds the questions, and of each stream the columns that list and filter need, by position:
    `q` question, `o` outcome, `n` attempts, `t` type of the first failure (-1 for none).
    """
    questions: Pool[Question] = Pool()
    types: Pool[str] = Pool()
    streams = [
        (part_number, arm.name, arm.method, part, stream)
        for part_number, part in enumerate(parts)
        for arm in part.arms
        for stream in sorted((*arm.streams, *arm.left_out), key=lambda one: one.order)
    ]
    by_id = [{str(one.id): one for one in part.source.questions} for part in parts]
    for part in parts:
        for question in part.source.questions:
            questions.number(question)
    numbers = [
        [questions.number(by_id[part_number][one.query_id]) for one in stream.records]
        for part_number, *_, stream in streams
    ]
    columns = [
        {
            "source": part_number,
            "label": part.source.label,
            "name": name,
            "method": method,
            "order": stream.order,
            "scope": _scope(part, method),
            "total": len(part.source.questions),
            "q": column,
            "o": [outcome(one) for one in stream.records],
            "n": [len(one.attempts) for one in stream.records],
            "t": [-1 if (kind := first_type(one)) is None else types.number(kind) for one in stream.records],
        }
        for (part_number, name, method, part, stream), column in zip(streams, numbers, strict=True)
    ]
    size = max(1, EPISODES_A_CHUNK // max(1, len(streams)))
    index = {
        "streams": columns,
        "types": types.values(),
        "outcomes": list(OUTCOMES),
        "questions": [
            [one.id, one.database_id, one.question, one.evidence, one.difficulty]
            for one in questions.values()
        ],
        "chunkSize": size,
        "opened": opened(parts, [(part, stream) for _, _, _, part, stream in streams]),
    }
    chunks = _chunks([stream for *_, stream in streams], numbers, size)
    return {"index": index, "schemas": [dict(part.source.schemas) for part in parts], **chunks}


def opened(parts: Sequence[Part], streams: Sequence[tuple[Part, LoadedStream]]) -> list[int]:
    """(number of a stream, position) of the episode that the page opens with: the first reference's."""
    number = next(
        number
        for number, (part, stream) in enumerate(streams)
        if part is parts[0] and stream.method == part.reference.method
    )
    return [number, min(ASKED_FOR, len(streams[number][1].records) - 1)]


def script_json(document: object) -> str:
    """JSON that no HTML parser sees anything in: ASCII only, and no ``<``, ``>`` or ``&``."""
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _scope(part: Part, method: str) -> str | None:
    settings = part.source.identity["methods"].get(method)
    policy = settings.get("policy") if isinstance(settings, dict) else None
    scope = policy.get("scope") if isinstance(policy, dict) else None
    return scope if isinstance(scope, str) else None


def _chunks(
    streams: Sequence[LoadedStream], columns: Sequence[Sequence[int]], size: int
) -> dict[str, dict[str, Any]]:
    places: dict[int, list[tuple[int, int]]] = {}
    for number, column in enumerate(columns):
        for position, question in enumerate(column):
            places.setdefault(question // size, []).append((number, position))
    return {
        f"chunk-{chunk}": _chunk(
            (
                f"{number}:{position}",
                streams[number].records[position],
                streams[number].initial_usage[position],
                streams[number].observations[position],
            )
            for number, position in places[chunk]
        )
        for chunk in sorted(places)
    }


def _chunk(
    episodes: Iterable[tuple[str, EpisodeRecord, UsageDict | None, Observation | None]],
) -> dict[str, Any]:
    texts: Pool[str] = Pool()
    served: Pool[str] = Pool()
    packed = {
        key: {
            "a": [
                _attempt(attempt, attempt["usage"] if attempt["step"] else initial, texts, served)
                for attempt in record.attempts
            ],
            "r": [
                [one["step"], texts.number(one["text"]), _usage(one["usage"])] for one in record.reflections
            ],
            "k": None if observation is None else _observation(observation, texts),
        }
        for key, record, initial, observation in episodes
    }
    return {"s": texts.values(), "m": [json.loads(one) for one in served.values()], "e": packed}


def _attempt(
    attempt: AttemptDict, usage: UsageDict | None, texts: Pool[str], served: Pool[str]
) -> dict[str, Any]:
    """An attempt and its tokens with short keys; texts by number, and what is absent left out."""
    failure = attempt["failure"]
    row: dict[str, Any] = {
        "q": texts.number(attempt["sql"]),
        "s": texts.number(attempt["status"]),
        "v": attempt["strict"],
        "o": _finite(attempt["official"]),
        "u": _usage(usage),
        "e": None if attempt["error"] is None else texts.number(attempt["error"]),
        "f": None
        if failure is None
        else [texts.number(failure[key]) for key in ("type", "subtype", "decided_by")],
        "z": None if attempt["finish_reason"] is None else texts.number(attempt["finish_reason"]),
        "p": attempt["repeat_of"],
        "d": attempt["draw"] or None,
        "x": [texts.number(one) for one in attempt["dropped"]] or None,
        "m": served.number(json.dumps([_use(one, texts) for one in attempt["memories"]]))
        if attempt["memories"]
        else None,
    }
    return {key: value for key, value in row.items() if value is not None}


def _use(use: MemoryUseDict, texts: Pool[str]) -> list[Any]:
    return [
        texts.number(use["id"]),
        texts.number(use["polarity"]),
        *(_finite(use[key]) for key in ("score", "dense", "lexical")),
        int(use["same_type"]),
        [
            [
                texts.number(one["query_id"]),
                texts.number(one["database_id"]),
                one["position"],
                texts.number(one["polarity"]),
            ]
            for one in use["sources"]
        ],
    ]


def _observation(observation: Observation, texts: Pool[str]) -> dict[str, Any]:
    """What the episode left in memory; `w` is the step that made the change."""
    provenance, content = observation.provenance, observation.content
    row: dict[str, Any] = {
        "id": texts.number(observation.entry_id),
        "p": texts.number(provenance.polarity.value),
        "w": provenance.step,
    }
    if content is not None:
        row |= {
            "t": texts.number(content.error_type.value),
            "s": texts.number(content.status.value),
            "o": texts.number(content.outcome.value),
            "d": texts.number(content.sql_delta),
        }
        if content.db_error is not None:
            row["e"] = texts.number(content.db_error)
    return row


def _usage(usage: UsageDict | None) -> list[int | None] | None:
    return None if usage is None else [usage["prompt_tokens"], usage["output_tokens"]]


def _finite(value: float | None) -> float | None:
    return round(value, 6) if value is not None and math.isfinite(value) else None
