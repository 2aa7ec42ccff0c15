"""Prompt families: the templates, read from the text files beside this module."""

import hashlib
import re
from dataclasses import dataclass, field
from importlib.resources import files
from string import Template

TEMPLATES = ("initial", "repair", "reflection", "blocks")
"""The files of a family; `blocks` holds the parts that the other three are filled with."""

_BLOCK = re.compile(r"^%% (.+)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFamily:
    """Templates that belong together, each the text of its file; the first line of a file is its version."""

    name: str
    initial: str = field(repr=False)
    repair: str = field(repr=False)
    reflection: str = field(repr=False)
    blocks: str = field(repr=False)


def load_family(name: str) -> PromptFamily:
    """The family whose files lie in the folder of that name."""
    folder = files(__package__) / name
    texts = {template: (folder / f"{template}.txt").read_text(encoding="utf-8") for template in TEMPLATES}
    return PromptFamily(name=name, **texts)


FAMILIES: dict[str, PromptFamily] = {name: load_family(name) for name in ("cached", "paper")}
"""By name. `cached`: what stays equal comes first; `paper`: the order of the method's authors."""


def template_hashes(family: PromptFamily) -> dict[str, str]:
    """sha256 (hex) of each file of the family, for manifests."""
    return {
        template: hashlib.sha256(getattr(family, template).encode("utf-8")).hexdigest()
        for template in TEMPLATES
    }


def fill(template: str, values: dict[str, str]) -> str:
    """The template with its ``$names`` replaced; a paragraph that comes out empty is left out whole."""
    paragraphs = (Template(paragraph).substitute(values) for paragraph in template.strip().split("\n\n"))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def blocks_of(family: PromptFamily) -> dict[str, str]:
    """The parts of the family's `blocks` by name, as templates."""
    pieces = _BLOCK.split(family.blocks)
    return {name: text.strip("\n") for name, text in zip(pieces[1::2], pieces[2::2], strict=True)}
