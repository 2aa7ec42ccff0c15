"""``merit methods``: the repair strategies by name, and what each differs in."""

import argparse
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from merit_sql.graph.method import Method


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command; it has no options."""
    parser = subparsers.add_parser(
        "methods",
        help="list the methods and what each differs in",
        description="One line a method: its name, what it is, and the fields in which it differs from merit.",
    )
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Print one line a method, however narrow the terminal is."""
    import sys

    from merit_sql.graph.method import METHODS

    width = max(map(len, METHODS))
    for method in METHODS.values():
        differences = ", ".join(differing(method, METHODS["merit"])) or "the reference"
        sys.stdout.write(f"{method.name:<{width}}  {method.summary} [{differences}]\n")
    return 0


def differing(method: "Method", reference: "Method") -> Iterator[str]:
    """``field=value`` for each field of a method, and of its retrieval, that differs from the reference's."""
    for field in dataclasses.fields(method):
        if field.name in {"name", "summary", "policy", "prompts"}:
            continue
        yield from _if_other(field.name, getattr(method, field.name), getattr(reference, field.name))
    if method.prompts.name != reference.prompts.name:
        yield f"prompts={method.prompts.name}"
    if method.policy is None or reference.policy is None:
        if method.policy is not reference.policy:
            yield "memory=none"
        return
    for field in dataclasses.fields(method.policy):
        yield from _if_other(
            field.name, getattr(method.policy, field.name), getattr(reference.policy, field.name)
        )


def _if_other(name: str, value: object, reference: object) -> Iterator[str]:
    if value != reference:
        yield f"{name}={_text(value)}"


def _text(value: object) -> str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return ":".join(_text(getattr(value, field.name)) for field in dataclasses.fields(value))
    if isinstance(value, tuple):
        return "+".join(map(_text, value))
    if isinstance(value, frozenset):
        return "+".join(sorted(map(_text, value))) or "none"
    return "any" if value is None else str(value)
