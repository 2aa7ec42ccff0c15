"""What each prompt carries, in which order, and in which form."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from merit_sql.domain.episode import AttemptDict, Case
from merit_sql.domain.failure import FailureKind, FailureType
from merit_sql.domain.memory import RankedMemory, Retrieved
from merit_sql.domain.schema import Schema
from merit_sql.domain.status import Polarity, Status
from merit_sql.prompts.rendering import (
    FAMILIES,
    Prompt,
    PromptFamily,
    render_initial,
    render_reflection,
    render_repair,
)

Attempts = Callable[..., AttemptDict]
Memories = Callable[..., RankedMemory]

CACHED, PAPER = FAMILIES["cached"], FAMILIES["paper"]
BOTH = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
MISSING = FailureType(kind=FailureKind.SCHEMA_LINKING, subtype="Missing Column", decided_by="no such column")


def order_of(text: str, *marks: str) -> list[int]:
    return [text.index(mark) for mark in marks]


@pytest.fixture
def repaired(case: Case, schema: Schema, attempt: Attempts, memory: Memories) -> Callable[..., Prompt]:
    """A repair prompt with something in every section."""

    return partial(
        render_repair,
        case=replace(case, evidence="singers are artists"),
        schema=schema,
        attempts=[
            attempt(0, "SELECT name FROM singer"),
            attempt(1, "SELECT nmae FROM singer", status="EXECUTION_ERROR", error="no such column: nmae"),
        ],
        failure=MISSING,
        memories=Retrieved(
            memories=[
                memory(Polarity.POSITIVE, "SELECT id FROM song", "SELECT COUNT(*) FROM song"),
                memory(
                    Polarity.NEGATIVE,
                    "SELECT 3 FROM song",
                    "SELECT 4 FROM sing",
                    error="no such table: sing",
                ),
            ]
        ),
        reflections=["Count the rows."],
        shows_reflections=True,
    )


@BOTH
def test_initial_carries_schema_evidence_question_and_rules_in_order(
    family: PromptFamily, case: Case, schema: Schema
) -> None:
    prompt = render_initial(family, replace(case, evidence="artists are singers"), schema)
    lines = prompt.text.split("\n")
    assert prompt.version == lines[0] == f"merit-sql prompts: {family.name}, version 1"
    places = order_of(
        prompt.text,
        "<schema>",
        "Singer_ID",
        "<evidence>",
        "artists are",
        "How many singers are there?",
        "Rules:",
    )
    assert places == sorted(places)
    assert "AS aliases" in prompt.text
    assert "<answer>" in lines[-1]
    assert (prompt.dropped, prompt.memory_ids) == ((), ())


@BOTH
def test_no_evidence_no_block(family: PromptFamily, case: Case, schema: Schema, attempt: Attempts) -> None:
    for evidence in ("", "  \n"):
        prompt = render_initial(family, replace(case, evidence=evidence), schema)
        assert "evidence" not in prompt.text
        assert "\n\n\n" not in prompt.text
    block = render_initial(family, replace(case, evidence="x"), schema).text
    assert re.search(r"[Ii]mplement it exactly", block)
    assert re.search(r"[Bb]ack-tick", block)


def test_cached_prompts_of_one_question_begin_alike(
    case: Case, schema: Schema, attempt: Attempts, repaired: Callable[..., Prompt]
) -> None:
    case = replace(case, evidence="singers are artists")
    initial = render_initial(CACHED, case, schema).text
    shared = initial[: initial.index("</question>")]
    one, two = [attempt(0, "SELECT a")], [attempt(0, "SELECT a"), attempt(1, "SELECT b")]
    first = repaired(CACHED, attempts=one).text
    assert first.startswith(shared)
    assert render_reflection(CACHED, case, schema, attempts=one, failure=MISSING).text.startswith(shared)
    history = first[: first.index("\n</attempts>")]
    assert history.endswith("SELECT a")
    assert repaired(CACHED, attempts=two).text.startswith(history)


def test_cached_prompts_of_one_database_share_the_schema(case: Case, schema: Schema) -> None:
    one = render_initial(CACHED, case, schema).text
    other = render_initial(CACHED, replace(case, question="Which?", evidence="none"), schema).text
    assert other.startswith(one[: one.index("</schema>")])


def test_cached_repair_ends_with_what_changes_most(repaired: Callable[..., Prompt]) -> None:
    places = order_of(
        repaired(CACHED).text,
        "<schema>",
        "<evidence>",
        "<question>",
        "Rules:",
        "<corrections>",
        "<failed_directions>",
        "<attempts>",
        "<reflections>",
        "<feedback>",
        "The question again:",
    )
    assert places == sorted(places)


def test_paper_repair_has_the_authors_order(repaired: Callable[..., Prompt]) -> None:
    places = order_of(
        repaired(PAPER).text,
        "version 1",
        "Role:",
        "<corrections>",
        "<failed_directions>",
        "<reflections>",
        "<feedback>",
        "<schema>",
        "<evidence>",
        "<question>",
        "<attempts>",
        "Rules:",
    )
    assert places == sorted(places)


@BOTH
def test_repair_carries_feedback_history_and_rules(
    family: PromptFamily, repaired: Callable[..., Prompt]
) -> None:
    text = repaired(family).text
    feedback = text[text.index("<feedback>") : text.index("</feedback>")]
    assert "status: EXECUTION_ERROR\n" in feedback
    assert "type: Schema Linking (Missing Column)\n" in feedback
    assert "error: no such column: nmae\n" in feedback
    attempts = text[text.index("<attempts>") : text.index("</attempts>")]
    assert "observed to be wrong" in attempts
    assert attempts.index("SELECT name FROM singer") < attempts.index("SELECT nmae FROM singer")
    assert "no such column" not in attempts
    assert "observations, not causes" in text
    assert "AS aliases" not in text
    assert "<answer> and </answer>" in text


@BOTH
def test_a_refused_repeat_is_not_listed_again(
    family: PromptFamily, repaired: Callable[..., Prompt], attempt: Attempts
) -> None:
    attempts = [
        attempt(0, "SELECT a"),
        attempt(1, "SELECT b", status="EXECUTION_ERROR", error="no such column: b"),
        attempt(2, "SELECT  b", repeat_of=1),
    ]
    text = repaired(family, attempts=attempts).text
    assert text == repaired(family, attempts=attempts[:2]).text
    assert text.count("SELECT b") == 1
    assert "error: no such column: b\n" in text


@BOTH
def test_empty_sections_say_so(
    family: PromptFamily, repaired: Callable[..., Prompt], attempt: Attempts
) -> None:
    text = repaired(family, memories=Retrieved(), reflections=[], attempts=[attempt(0, "")]).text
    for tag in ("corrections", "failed_directions", "reflections"):
        assert "\n(none)\n" in text[text.index(f"<{tag}>") : text.index(f"</{tag}>") + 1]
    assert "error: (none)\n" in text
    assert "(no SQL)" in text


@BOTH
def test_only_a_reflecting_method_has_the_section(
    family: PromptFamily, repaired: Callable[..., Prompt]
) -> None:
    assert "Count the rows." in repaired(family).text
    plain = repaired(family, reflections=[], shows_reflections=False).text
    assert "eflection" not in plain
    assert "\n\n\n" not in plain


def test_cached_memories_print_each_sql_once(repaired: Callable[..., Prompt], memory: Memories) -> None:
    text = repaired(CACHED).text
    for sql in (
        "SELECT id FROM song",
        "SELECT COUNT(*) FROM song",
        "SELECT 3 FROM song",
        "SELECT 4 FROM sing",
    ):
        assert text.count(sql) == 1
    negative = memory(
        Polarity.NEGATIVE, "SELECT 3 FROM song", "SELECT 4 FROM sing", error="no such table: sing"
    )
    assert (
        f"""[{negative.entry.id[:12]}] Schema Linking
  changed: SELECT 3 FROM song
  to, also wrong: SELECT 4 FROM sing
  outcome: EXECUTION_ERROR; error: no such table: sing
"""
        in text
    )
    positive = memory(Polarity.POSITIVE, "SELECT id FROM song", "SELECT COUNT(*) FROM song")
    assert (
        f"""[{positive.entry.id[:12]}] Result Mismatch
  wrong: SELECT id FROM song
  status: DENOTATION_MISMATCH; error: (none)
  right: SELECT COUNT(*) FROM song
"""
        in text
    )


def test_a_repeated_query_in_memory_is_printed_once(
    repaired: Callable[..., Prompt], memory: Memories
) -> None:
    same = memory(Polarity.NEGATIVE, "SELECT 3 FROM song", "SELECT 3 FROM song")
    text = repaired(CACHED, memories=Retrieved(memories=[same])).text
    assert text.count("SELECT 3 FROM song") == 1


def test_paper_memories_print_every_field(repaired: Callable[..., Prompt], memory: Memories) -> None:
    text = repaired(PAPER).text
    positive = memory(Polarity.POSITIVE, "SELECT id FROM song", "SELECT COUNT(*) FROM song")
    negative = memory(
        Polarity.NEGATIVE, "SELECT 3 FROM song", "SELECT 4 FROM sing", error="no such table: sing"
    )
    assert (
        f"""- id: {positive.entry.id}
  type: Result Mismatch
  failure context: attempted_sql=SELECT id FROM song; status=DENOTATION_MISMATCH; db_error=(none)
  direction: SELECT COUNT(*) FROM song
  delta: SELECT id FROM song => SELECT COUNT(*) FROM song
"""
        in text
    )
    assert (
        f"""- id: {negative.entry.id}
  type: Schema Linking
  failure context: attempted_sql=SELECT 4 FROM sing; status=EXECUTION_ERROR; db_error=no such table: sing
  attempted delta: SELECT 3 FROM song => SELECT 4 FROM sing
  outcome: EXECUTION_ERROR
  error: no such table: sing
"""
        in text
    )


@BOTH
def test_a_delta_with_an_arrow_in_its_sql_keeps_both_sides(
    family: PromptFamily, repaired: Callable[..., Prompt], memory: Memories
) -> None:
    entry = memory(Polarity.NEGATIVE, "SELECT 'a => b'", "SELECT 'c => d'")
    text = repaired(family, memories=Retrieved(memories=[entry])).text
    assert "SELECT 'a => b'" in text
    assert "SELECT 'c => d'" in text


@BOTH
def test_memories_before_a_first_answer(
    family: PromptFamily, case: Case, schema: Schema, memory: Memories
) -> None:
    entry = memory(Polarity.POSITIVE, "SELECT 1", "SELECT 2")
    prompt = render_initial(family, case, schema, memories=Retrieved(memories=[entry]))
    assert prompt.memory_ids == (entry.entry.id,)
    assert "SELECT 2" in prompt.text


@BOTH
def test_reflection_shows_status_and_error_of_every_attempt(
    family: PromptFamily, case: Case, schema: Schema, attempt: Attempts
) -> None:
    attempts = [
        attempt(0, "SELECT a", status=Status.TIMEOUT.value, error="timed out after 30 s"),
        attempt(1, "SELECT b"),
    ]
    text = render_reflection(family, case, schema, attempts=attempts, failure=MISSING).text
    places = order_of(
        text,
        "<schema>",
        "<question>",
        "SELECT a\n  status: TIMEOUT; error: timed out after 30 s",
        "SELECT b\n  status: DENOTATION_MISMATCH; error: (none)",
        "inside <reflection> and </reflection>",
    )
    assert places == sorted(places)
    assert "Schema Linking (Missing Column)" in text
    assert "<answer>" not in text


@BOTH
@pytest.mark.parametrize("kind", FailureKind)
def test_every_failure_type_can_be_told(
    family: PromptFamily, kind: FailureKind, repaired: Callable[..., Prompt]
) -> None:
    failure = FailureType(kind=kind, subtype="Unknown", decided_by="")
    text = repaired(family, failure=failure).text
    assert f"type: {kind.value}\n" in text
    assert ("advice: \n" in text, "advice: " in text) == (False, family is CACHED)


@BOTH
def test_official_verdicts_and_tallies_stay_out(
    family: PromptFamily, repaired: Callable[..., Prompt], attempt: Attempts
) -> None:
    attempts = [attempt(0, "SELECT a", official=0.731, confirmed_by="CANARY", failure=None)]
    text = repaired(family, attempts=attempts, failure=replace(MISSING, decided_by="CANARY")).text
    assert "CANARY" not in text
    assert "731" not in text


@BOTH
def test_there_must_be_an_attempt(family: PromptFamily, repaired: Callable[..., Prompt]) -> None:
    with pytest.raises(ValueError, match="no attempt"):
        repaired(family, attempts=[])
