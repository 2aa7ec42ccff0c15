"""What a run's results depend on, collected for its manifest."""

import dataclasses
import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from merit_sql.domain.encoder import Encoder
from merit_sql.domain.execution import Database
from merit_sql.eval.datasets import Question, Suite
from merit_sql.graph.method import Method
from merit_sql.models.decoding import Decoding
from merit_sql.models.record import RecordedChatModel
from merit_sql.prompts.rendering import ESTIMATE, template_hashes

PACKAGES = ("merit-sql", "sqlglot")
"""Packages whose version can change any episode: ours, and the one that the gate parses with. A model's
runtime is part of the model's own identity."""

VECTOR_PACKAGES = ("sentence-transformers", "torch")
"""Packages whose version can change the low bits of a vector, and so a tie between memories."""

if TYPE_CHECKING:
    from merit_sql.eval.bench import Plan


def identity_of(
    plan: "Plan",
    suite: Suite,
    questions: Sequence[Question],
    model: RecordedChatModel,
    encoder: Encoder | None,
) -> dict[str, Any]:
    """The identity of a run as JSON-able data; paths, clocks and the sources of replies are no part."""
    databases = sorted({question.database_id for question in questions})
    families = {method.prompts.name: method.prompts for method in plan.methods}
    return {
        "scoring": {
            "suite": suite.name,
            "dataset": suite.digest,
            "evaluator": suite.evaluator.settings(),
            "databases": {name: _fingerprint(suite.catalogue.variants(name)) for name in databases},
            "sqlite": sqlite3.sqlite_version,
        },
        "selection": {
            "databases": plan.databases,
            "limit": plan.limit,
            "questions": len(questions),
            **({} if plan.questions is None else {"ids": sorted(plan.questions)}),
        },
        "methods": {method.name: plain(method) for method in plan.methods},
        "orders": list(plan.orders),
        "budget": plan.budget,
        "model": model.identity.to_dict(),
        "decoding": plain(Decoding(max_tokens=plan.tokens.reply)),
        "encoder": None
        if encoder is None
        else {
            "id": encoder.id,
            "revision": encoder.revision,
            "dimension": encoder.dimension,
            "versions": _versions(VECTOR_PACKAGES),
        },
        "prompts": {
            "budget": plan.tokens.prompt,
            "reflection": plan.tokens.reflection,
            "estimate": ESTIMATE,
            "templates": {name: template_hashes(family) for name, family in sorted(families.items())},
        },
        "initial": "generate" if plan.predictions is None else _digest(list(plan.predictions)),
        "regime": plan.regime.value,
        "versions": _versions(PACKAGES),
    }


def _versions(packages: Sequence[str]) -> dict[str, str]:
    return {name: version(name) for name in packages}


def plain(value: object) -> object:
    """A frozen value as JSON-able data, fields by name."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if isinstance(value, Method):
            fields = {
                f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.name != "prompts"
            }
            return {**{key: plain(item) for key, item in fields.items()}, "prompts": value.prompts.name}
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, frozenset | set):
        return sorted(str(plain(item)) for item in value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def _fingerprint(variants: Sequence[Database]) -> str:
    """The one database's fingerprint, or a hash over those of all that an evaluator runs on."""
    prints = [variant.fingerprint() for variant in variants]
    return prints[0] if len(prints) == 1 else _digest(prints)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode("ascii")).hexdigest()
