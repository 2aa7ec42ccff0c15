"""Observations as plain data, in one canonical form of bytes."""

import json
from collections.abc import Mapping
from typing import Any

from merit_sql.domain.errors import DataError
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.memory import Applicability, Observation, Provenance, Transition
from merit_sql.domain.status import Polarity, Regime, Status

LARGEST_POSITION = 2**63 - 1


def canonical(data: object) -> bytes:
    """Canonical JSON: sorted keys, no spaces, ASCII only, so that every text has bytes."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def check_observation(observation: Observation) -> None:
    """Raises `DataError` where an observation contradicts itself."""
    provenance, content = observation.provenance, observation.content
    where = f"observation {provenance.commit_key}"
    if not 0 <= provenance.position <= LARGEST_POSITION:
        raise DataError(f"{where}: its position must lie in 0 … {LARGEST_POSITION}")
    if content is None:
        return
    if content.identity != observation.entry_id:
        raise DataError(
            f"{where}: its entry id {observation.entry_id} is not the hash of its type and delta, "
            f"{content.identity}; make it with Observation.of"
        )
    if content.database_id != provenance.database_id:
        raise DataError(
            f"{where}: its text is about database {content.database_id!r}, "
            f"its provenance about {provenance.database_id!r}"
        )


def observation_to_dict(observation: Observation) -> dict[str, Any]:
    """An observation as JSON-able data, everything it holds."""
    content = observation.content
    return {
        "entry_id": observation.entry_id,
        "provenance": provenance_to_dict(observation.provenance),
        "content": None if content is None else _content_to_dict(content),
    }


def observation_from_dict(data: Mapping[str, Any]) -> Observation:
    """The inverse of `observation_to_dict`; raises KeyError, TypeError or ValueError at anything else."""
    content = data["content"]
    return Observation(
        entry_id=text_of(data, "entry_id"),
        provenance=provenance_from_dict(data["provenance"]),
        content=None if content is None else _content_from_dict(content),
    )


def provenance_to_dict(provenance: Provenance) -> dict[str, Any]:
    """A provenance with the fields of the exchange format, in their order there."""
    return {
        "run": provenance.run,
        "method": provenance.method,
        "regime": provenance.regime.value,
        "query_id": provenance.query_id,
        "database_id": provenance.database_id,
        "position": provenance.position,
        "step": provenance.step,
        "retrieved_ids": list(provenance.retrieved_ids),
        "polarity": provenance.polarity.value,
    }


def provenance_from_dict(data: Mapping[str, Any]) -> Provenance:
    """The inverse of `provenance_to_dict`; raises KeyError, TypeError or ValueError at anything else."""
    retrieved = data["retrieved_ids"]
    if not isinstance(retrieved, list) or not all(isinstance(one, str) for one in retrieved):
        raise ValueError("retrieved_ids must be a list of texts")
    return Provenance(
        run=text_of(data, "run"),
        method=text_of(data, "method"),
        regime=Regime(text_of(data, "regime")),
        query_id=text_of(data, "query_id"),
        database_id=text_of(data, "database_id"),
        position=number_of(data, "position"),
        step=number_of(data, "step"),
        retrieved_ids=tuple(retrieved),
        polarity=Polarity(text_of(data, "polarity")),
    )


def text_of(data: Mapping[str, Any], field: str) -> str:
    """The text in a field; raises KeyError or ValueError."""
    value = data[field]
    if not isinstance(value, str):
        raise ValueError(f"{field} must be a text, not {value!r:.80}")
    return value


def optional_text_of(data: Mapping[str, Any], field: str) -> str | None:
    """The text or null in a field; raises KeyError or ValueError."""
    return None if data[field] is None else text_of(data, field)


def number_of(data: Mapping[str, Any], field: str) -> int:
    """The whole number from 0 up in a field; raises KeyError or ValueError."""
    value = data[field]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{field} must be a whole number from 0 up, not {value!r:.80}")
    return value


def _content_to_dict(content: Transition) -> dict[str, Any]:
    return {
        "question": content.question,
        "schema": content.schema,
        "database_id": content.database_id,
        "error_type": content.error_type.value,
        "failed_sql": content.failed_sql,
        "status": content.status.value,
        "db_error": content.db_error,
        "sql_delta": content.sql_delta,
        "outcome": content.outcome.value,
        "successful_direction": content.successful_direction,
        "applicability": content.applicability.value,
    }


def _content_from_dict(data: Mapping[str, Any]) -> Transition:
    return Transition(
        question=text_of(data, "question"),
        schema=text_of(data, "schema"),
        database_id=text_of(data, "database_id"),
        error_type=FailureKind(text_of(data, "error_type")),
        failed_sql=text_of(data, "failed_sql"),
        status=Status(text_of(data, "status")),
        db_error=optional_text_of(data, "db_error"),
        sql_delta=text_of(data, "sql_delta"),
        outcome=Status(text_of(data, "outcome")),
        successful_direction=text_of(data, "successful_direction"),
        applicability=Applicability(text_of(data, "applicability")),
    )
