"""The section budget: what goes first, what never goes, and that a prompt always fits."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from merit_sql.domain.episode import AttemptDict, Case
from merit_sql.domain.failure import FailureType
from merit_sql.domain.memory import RankedMemory, Retrieved
from merit_sql.domain.schema import Column, Schema, Table
from merit_sql.domain.status import Polarity
from merit_sql.prompts.budget import fit
from merit_sql.prompts.rendering import (
    FAMILIES,
    Prompt,
    PromptBudgetError,
    PromptFamily,
    estimate_tokens,
    render_initial,
    render_reflection,
    render_repair,
)

BOTH = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
TABLES = ("album", "singer", "band", "song")
FILLER = "x" * 60


def wide_schema(tables: tuple[str, ...] = TABLES, columns: int = 5) -> Schema:
    return Schema(
        database_id="music",
        tables=tuple(
            Table(
                name=name,
                columns=tuple(Column(name=f"{name[:1]}{n}_{FILLER}", type="TEXT") for n in range(columns)),
            )
            for name in tables
        ),
    )


@pytest.fixture
def repaired(
    case: Case,
    mismatch: FailureType,
    attempt: Callable[..., AttemptDict],
    memory: Callable[..., RankedMemory],
) -> Callable[[PromptFamily, int], Prompt]:
    """A repair prompt with three attempts, four memories and four tables, within a budget.

    The attempts name the table band; the question is about singers.
    """
    attempts = [attempt(step, f"SELECT {step}, '{FILLER * 3}' FROM band") for step in range(3)]
    memories = [
        memory(Polarity.POSITIVE, f"SELECT '{FILLER}'", f"SELECT {rank}", entry_id=f"{rank}" * 64)
        for rank in range(3)
    ]
    negative = memory(Polarity.NEGATIVE, f"SELECT '{FILLER}'", "SELECT 9", entry_id="9" * 64)

    def render(family: PromptFamily, budget: int) -> Prompt:
        return render_repair(
            family,
            case,
            wide_schema(),
            attempts=attempts,
            failure=mismatch,
            memories=Retrieved(memories=[*memories, negative]),
            reflections=[f"{n} {FILLER}" for n in range(3)],
            shows_reflections=True,
            budget=budget,
        )

    return render


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("a" * 7, 2), ("a" * 8, 3), ("é" * 7, 4), ("\ud800", 1)],
)
def test_estimate(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@BOTH
def test_sections_go_in_the_order_of_the_method(
    family: PromptFamily, repaired: Callable[[PromptFamily, int], Prompt]
) -> None:
    order = [
        "memory:999999999999",
        "memory:222222222222",
        "memory:111111111111",
        "memory:000000000000",
        "attempt:0",
        "reflection:0",
        "attempt:1",
        "reflection:1",
        "table:song",
        "table:album",
        "table:singer",
    ]
    whole = repaired(family, 100_000)
    assert whole.dropped == ()
    seen = set()
    for budget in range(whole.estimated_tokens, 0, -5):
        try:
            prompt = repaired(family, budget)
        except PromptBudgetError:
            break
        assert prompt.estimated_tokens <= budget
        parts = [name for name in prompt.dropped if not name.startswith("cut:")]
        assert parts[: len(order)] == order[: len(parts)]
        assert len(parts) <= len(order) or parts[len(order) :] == ["table:band"]
        seen.add(len(parts))
        shown = {name for name in order if name not in parts}
        for name in order:
            assert (mark_of(name) in prompt.text) == (name in shown)
        assert "SELECT 2, 'xxx" in prompt.text
        assert "2 xxx" in prompt.text
        assert "Rules:" in prompt.text
        assert prompt.text.split("\n")[0] == prompt.version
        assert prompt.text.endswith(whole.text[-60:])
    assert seen == set(range(len(order) + 2))


def mark_of(name: str) -> str:
    kind, _, which = name.partition(":")
    return {
        "memory": which,
        "attempt": f"SELECT {which}, '",
        "reflection": f"- {which} xxx",
        "table": f"table {which}:",
    }[kind]


@BOTH
def test_no_more_is_dropped_than_must_be(
    family: PromptFamily, repaired: Callable[[PromptFamily, int], Prompt]
) -> None:
    whole = repaired(family, 100_000).estimated_tokens
    assert repaired(family, whole).dropped == ()
    assert repaired(family, whole - 1).dropped == ("memory:999999999999",)


@BOTH
def test_dropped_memories_are_not_among_those_shown(
    family: PromptFamily, repaired: Callable[[PromptFamily, int], Prompt]
) -> None:
    prompt = repaired(family, repaired(family, 100_000).estimated_tokens - 1)
    assert prompt.memory_ids == ("0" * 64, "1" * 64, "2" * 64)


@BOTH
def test_a_first_answer_keeps_the_tables_that_the_question_is_about(family: PromptFamily, case: Case) -> None:
    whole = render_initial(family, case, wide_schema())
    prompt = render_initial(family, case, wide_schema(), budget=whole.estimated_tokens - 250)
    assert prompt.dropped == ("table:song", "table:band", "table:album")
    assert "table singer:" in prompt.text


@BOTH
def test_instructions_alone_do_not_fit(family: PromptFamily, case: Case) -> None:
    with pytest.raises(
        PromptBudgetError, match=rf"{family.name}/initial take (\d+) tokens.*at least \1"
    ) as caught:
        render_initial(family, case, wide_schema(), budget=50)
    needed = re.search(r"take (\d+)", str(caught.value))
    assert needed is not None
    prompt = render_initial(family, case, wide_schema(), budget=int(needed[1]))
    assert prompt.estimated_tokens == int(needed[1])
    assert prompt.dropped == tuple(f"table:{name}" for name in ("song", "band", "album", "singer"))
    assert "(none)" in prompt.text


@BOTH
def test_texts_without_end_are_cut_with_a_mark(
    family: PromptFamily, case: Case, mismatch: FailureType, attempt: Callable[..., AttemptDict]
) -> None:
    endless = replace(case, question="why " * 5_000, evidence="since " * 5_000)
    prompt = render_repair(
        family,
        endless,
        wide_schema(("singer",), columns=3_000),
        attempts=[
            attempt(0, "SELECT a FROM singer -- x\n WHERE a = '" + "é" * 9_000 + "'", error="no " * 9_000)
        ],
        failure=mismatch,
        memories=Retrieved(),
        reflections=[],
        shows_reflections=False,
    )
    assert prompt.estimated_tokens <= 4_096
    assert {"cut:question", "cut:evidence", "cut:attempt:0", "cut:feedback", "cut:table:singer"} <= set(
        prompt.dropped
    )
    assert "why why" in prompt.text
    assert "since since" in prompt.text
    assert "SELECT a FROM singer" in prompt.text
    assert "table singer:" in prompt.text
    assert prompt.text.count(" more characters]") >= 4
    assert " more columns)" in prompt.text


FOREIGN = st.text(alphabet="aé漢🎵 '\"\n;<>/", max_size=30).map(lambda text: text * 200)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    question=FOREIGN,
    evidence=FOREIGN,
    sqls=st.lists(FOREIGN, min_size=1, max_size=8),
    error=FOREIGN,
    names=st.lists(FOREIGN, max_size=6, unique=True),
    budget=st.integers(min_value=900, max_value=5_000),
    family=st.sampled_from(list(FAMILIES.values())),
)
def test_every_prompt_fits_and_is_the_same_again(
    *,
    case: Case,
    mismatch: FailureType,
    attempt: Callable[..., AttemptDict],
    memory: Callable[..., RankedMemory],
    question: str,
    evidence: str,
    sqls: list[str],
    error: str,
    names: list[str],
    budget: int,
    family: PromptFamily,
) -> None:
    case = replace(case, question=question, evidence=evidence)
    attempts = [attempt(step, sql, error=error) for step, sql in enumerate(sqls)]
    memories = Retrieved(
        memories=[
            memory(polarity, sql, error, error=error, entry_id=f"{step}" * 64)
            for step, sql in enumerate(sqls[:4])
            for polarity in [Polarity.POSITIVE if step < 3 else Polarity.NEGATIVE]
        ]
    )

    def prompts() -> list[Prompt]:
        schema = wide_schema(tuple(names))
        return [
            render_initial(family, case, schema, memories=memories, budget=budget),
            render_repair(
                family,
                case,
                schema,
                attempts=attempts,
                failure=mismatch,
                memories=memories,
                reflections=sqls,
                shows_reflections=True,
                budget=budget,
            ),
            render_reflection(family, case, schema, attempts=attempts, failure=mismatch, budget=budget),
        ]

    rendered = prompts()
    assert rendered == prompts()
    for prompt in rendered:
        assert prompt.estimated_tokens == estimate_tokens(prompt.text) <= budget
    for prompt in rendered[1:]:
        assert f"Attempt {len(sqls) - 1}" in prompt.text
    assert "inside <answer> and </answer>" in rendered[1].text


def test_fit_takes_the_fewest_steps() -> None:
    tried = []

    def render(left_out: frozenset[str], halvings: int) -> Prompt:
        tried.append((left_out, halvings))
        text = "".join(part * (70 >> halvings) for part in "abcd" if part not in left_out)
        return Prompt(text=text, dropped=(), estimated_tokens=0, version="")

    plan = ["d", "c", "tighten", "b"]
    assert [fit(render, plan, budget, template="t")[1] for budget in (80, 79, 60, 40, 39, 20, 10)] == [
        (),
        ("d",),
        ("d",),
        ("d", "c"),
        ("d", "c"),
        ("d", "c"),
        ("d", "c", "b"),
    ]
    with pytest.raises(PromptBudgetError, match="t take 10 tokens"):
        fit(render, plan, 9, template="t")
