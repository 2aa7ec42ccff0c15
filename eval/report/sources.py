"""Runs side by side: those of one identity become one source, others are refused or stand apart, labelled."""

import dataclasses
import json
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from merit_sql.domain.errors import DataError, IdentityError
from merit_sql.eval.datasets import Question
from merit_sql.eval.runs import LoadedRun, LoadedStream
from merit_sql.graph.method import METHODS

Difference: TypeAlias = tuple[str, object, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What one set of settings gave: one run, or several that differ in methods and orders alone.

    `label` is empty where there is no other source. `names` are the run folders' names, `identity` the
    union of their manifests'. `streams` are sorted by method, in the registry's order, and by order.
    `differing` holds this source's value of every field in which the sources differ.
    """

    label: str
    names: tuple[str, ...]
    run: str
    identity: Mapping[str, Any]
    questions: tuple[Question, ...]
    schemas: Mapping[str, str]
    streams: tuple[LoadedStream, ...]
    differing: Mapping[str, object] = dataclasses.field(default_factory=dict)

    @property
    def missing(self) -> tuple[tuple[str, int], ...]:
        """Streams of the manifest's methods and orders of which no episode is finished."""
        begun = {(stream.method, stream.order) for stream in self.streams}
        wanted = ((name, order) for name in self.identity["methods"] for order in self.identity["orders"])
        return tuple(sorted(set(wanted) - begun, key=stream_key))

    def is_finished(self, stream: LoadedStream) -> bool:
        """Whether every question of the run has an episode in `stream`."""
        return len(stream.records) >= len(self.questions)


def stream_key(stream: tuple[str, int]) -> tuple[int, str, int]:
    """Sorts (method, order) by the registry's order of methods, unknown ones last."""
    method, order = stream
    known = list(METHODS)
    return (known.index(method) if method in METHODS else len(known), method, order)


def combine(runs: Sequence[LoadedRun], *, labelled: bool = False) -> tuple[Source, ...]:
    """The sources that `runs` make up.

    Raises `IdentityError` naming each field in which two runs differ, unless that is methods or orders
    alone, or `labelled` asks for them side by side. Raises `DataError` where two runs of one identity
    contradict each other, and where no stream has a finished episode.
    """
    sources: list[Source] = []
    for run in runs:
        new = _source(run)
        refusals = []
        for index, old in enumerate(sources):
            differences = list(differing(old, new))
            if not differences:
                sources[index] = _merged(old, new)
                break
            refusals.append((old, differences))
        else:
            if refusals and not labelled:
                raise IdentityError(_refusal(new, refusals[0]))
            sources.append(new)
    if not any(source.streams for source in sources):
        names = ", ".join(name for source in sources for name in source.names)
        raise DataError(f"{names}: no episode is finished; run merit bench first")
    return _labelled(sources) if len(sources) > 1 else tuple(sources)


def differing(old: Source, new: Source) -> Iterator[Difference]:
    """(field, old value, new value) for everything that keeps two sources from being one.

    Methods, orders and prompt families that only one of them has do not count, nor does an encoder where
    only one of them needed any; the initial predictions count beside the identity.
    """
    yield from _differences("", _common(old.identity, new.identity), _common(new.identity, old.identity))
    if old.questions != new.questions:
        yield ("questions", f"{len(old.questions)} questions", f"{len(new.questions)} others")
    mine, theirs = _initial_sql(old.streams), _initial_sql(new.streams)
    others = [query for query in mine.keys() & theirs.keys() if mine[query] != theirs[query]]
    if others:
        query = min(others, key=lambda one: (len(one), one))
        yield (f"initial prediction of question {query}", mine[query], theirs[query])


def short(value: object) -> str:
    """A value on one line, cut at 120 characters."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= 120 else text[:117] + "..."


def _source(run: LoadedRun) -> Source:
    streams = sorted(run.streams, key=lambda one: stream_key((one.method, one.order)))
    known = {str(question.id) for question in run.questions}
    for stream in streams:
        foreign = [record.query_id for record in stream.records if record.query_id not in known]
        if foreign:
            raise DataError(
                f"{run.folder}: {stream.method}-{stream.order} holds an episode of question {foreign[0]}, "
                "which its questions.jsonl does not; run the same merit bench again"
            )
    return Source(
        label="",
        names=(run.folder.resolve().name,),
        run=run.run,
        identity=run.identity,
        questions=run.questions,
        schemas=run.schemas,
        streams=tuple(streams),
    )


def _common(identity: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """`identity` without what may differ from `other`."""
    kept = {key: value for key, value in identity.items() if key != "orders"}
    kept["methods"] = _shared(identity["methods"], other["methods"])
    if identity.get("encoder") is None or other.get("encoder") is None:
        kept.pop("encoder", None)
    prompts, others = identity.get("prompts"), other.get("prompts")
    if isinstance(prompts, dict) and isinstance(others, dict):
        mine, theirs = prompts.get("templates"), others.get("templates")
        if isinstance(mine, dict) and isinstance(theirs, dict):
            kept["prompts"] = {**prompts, "templates": _shared(mine, theirs)}
    return kept


def _shared(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mine.items() if key in theirs}


def _differences(at: str, old: object, new: object) -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences(f"{at}.{key}" if at else key, old.get(key), new.get(key))
    elif old != new:
        yield (at, old, new)


def _initial_sql(streams: Iterable[LoadedStream]) -> dict[str, str]:
    return {record.query_id: record.attempts[0]["sql"] for stream in streams for record in stream.records}


def _merged(old: Source, new: Source) -> Source:
    streams = {(stream.method, stream.order): stream for stream in old.streams}
    for stream in new.streams:
        key = (stream.method, stream.order)
        known = streams.setdefault(key, stream)
        shorter, longer = sorted((known, stream), key=lambda one: len(one.records))
        if longer.records[: len(shorter.records)] != shorter.records:
            raise DataError(
                f"{', '.join(old.names)} and {', '.join(new.names)} both hold {key[0]}, order {key[1]}, with "
                "other episodes: leave one of them out"
            )
        streams[key] = longer
    identity = {
        **old.identity,
        "methods": {**old.identity["methods"], **new.identity["methods"]},
        "orders": sorted({*old.identity["orders"], *new.identity["orders"]}),
        "encoder": old.identity.get("encoder") or new.identity.get("encoder"),
        "prompts": _united(old.identity.get("prompts"), new.identity.get("prompts")),
    }
    return dataclasses.replace(
        old,
        names=tuple(dict.fromkeys((*old.names, *new.names))),
        identity=identity,
        schemas={**old.schemas, **new.schemas},
        streams=tuple(streams[key] for key in sorted(streams, key=stream_key)),
    )


def _united(old: object, new: object) -> object:
    """Two equal settings of prompts, with the templates of every family that either of them has."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return old
    return {**new, **old, "templates": {**new.get("templates", {}), **old.get("templates", {})}}


def _refusal(new: Source, refused: tuple[Source, Sequence[Difference]]) -> str:
    old, differences = refused
    lines = [f"{field}: {short(one)} and {short(other)}" for field, one, other in differences]
    return (
        f"{', '.join(old.names)} and {', '.join(new.names)} are runs of other settings, and their figures do "
        "not compare; report each by itself, or show them side by side with --labelled:\n  "
        + "\n  ".join(lines)
    )


def _labelled(sources: Sequence[Source]) -> tuple[Source, ...]:
    if len(sources) > len(string.ascii_uppercase):
        raise DataError(f"{len(sources)} different runs are too many for one report: give at most 26")
    values: list[dict[str, object]] = [{} for _ in sources]
    for index, source in enumerate(sources):
        for other in range(index):
            for field, one, two in differing(sources[other], source):
                values[other][field], values[index][field] = one, two
    fields = sorted({field for one in values for field in one})
    for index, source in enumerate(sources):
        for field in fields:
            values[index].setdefault(field, _value_at(source.identity, field))
    return tuple(
        dataclasses.replace(source, label=label, differing={field: held[field] for field in fields})
        for label, source, held in zip(string.ascii_uppercase, sources, values, strict=False)
    )


def _value_at(identity: Mapping[str, Any], field: str) -> object:
    value: Any = identity
    for key in field.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
