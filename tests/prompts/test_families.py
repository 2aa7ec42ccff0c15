"""The template files themselves."""

import hashlib
import re
from pathlib import Path
from string import Template

import pytest

import merit_sql.prompts
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.status import Polarity
from merit_sql.prompts.families import FAMILIES, TEMPLATES, PromptFamily, blocks_of, fill, template_hashes
from merit_sql.prompts.text import FRAME_TAGS

BOTH = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


@BOTH
def test_every_file_begins_with_the_version_line(family: PromptFamily) -> None:
    for template in TEMPLATES:
        first, second = getattr(family, template).split("\n")[:2]
        assert first == f"merit-sql prompts: {family.name}, version 1"
        assert second == ""


@BOTH
def test_hashes_are_those_of_the_files(family: PromptFamily) -> None:
    folder = Path(merit_sql.prompts.__path__[0]) / family.name
    expected = {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.txt")}
    assert template_hashes(family) == expected
    assert set(expected) == set(TEMPLATES)


@BOTH
def test_every_tag_of_a_template_is_broken_in_data(family: PromptFamily) -> None:
    tags = set(re.findall(r"</?([a-z_]+)>", "".join(getattr(family, template) for template in TEMPLATES)))
    assert tags == set(FRAME_TAGS)


@BOTH
def test_tags_of_a_template_open_and_close(family: PromptFamily) -> None:
    for template in TEMPLATES:
        text = getattr(family, template)
        for tag in FRAME_TAGS:
            assert text.count(f"<{tag}>") == text.count(f"</{tag}>")


@BOTH
def test_templates_name_only_what_is_known(family: PromptFamily) -> None:
    sections = {"schema", "evidence", "question", "experience"}
    told = {"attempts", "reflections", "status", "type", "error", "advice"}
    assert set(Template(family.initial).get_identifiers()) == sections
    assert set(Template(family.repair).get_identifiers()) | {"advice"} == sections | told
    assert set(Template(family.reflection).get_identifiers()) == sections - {"experience"} | {
        "attempts",
        "type",
    }
    assert {polarity.value for polarity in Polarity} <= set(blocks_of(family))


def test_each_failure_type_has_its_advice() -> None:
    advised = [
        name.removeprefix("advice ") for name in blocks_of(FAMILIES["cached"]) if name.startswith("advice ")
    ]
    assert advised == [kind.value for kind in FailureKind]


def test_fill_leaves_empty_paragraphs_out_and_reads_no_data() -> None:
    assert fill("a $x\n\n$y\n\nb", {"x": "$y {z}\n\n", "y": ""}) == "a $y {z}\n\n\n\nb"
