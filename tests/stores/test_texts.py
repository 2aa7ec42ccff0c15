"""The texts of both channels, spelled out."""

from collections.abc import Callable

from merit_sql.domain.memory import MemoryQuery, Observation
from merit_sql.stores.texts import MemoryText, dense_text, lexical_text, query_text, tokens

Observe = Callable[..., Observation]

COMPACT = """\
question: How many singers?
failure: attempted_sql=SELECT nam FROM singer; status=EXECUTION_ERROR; db_error=no such column: nam
delta: select nam from singer=>select name from singer
type: Schema Linking
outcome: CORRECT
error: no such column: nam"""


def test_the_query_names_question_sql_failure_and_type(ask: MemoryQuery) -> None:
    assert query_text(ask) == (
        "question: How many bands?\n"
        "sql: SELECT nam FROM band\n"
        "failure: attempted_sql=SELECT nam FROM band; status=EXECUTION_ERROR; db_error=no such column: nam\n"
        "type: Schema Linking"
    )


def test_the_compact_text_has_no_schema_and_the_paper_text_has_it_second(observe: Observe) -> None:
    content = observe(0).content
    assert content is not None
    assert dense_text(content, MemoryText.COMPACT) == COMPACT
    question, rest = COMPACT.split("\n", 1)
    assert dense_text(content, MemoryText.PAPER) == f"{question}\nschema: singer(id, name)\n{rest}"


def test_bm25_reads_the_delta_verbatim_and_the_direction_last(observe: Observe) -> None:
    content = observe(0, db_error=None).content
    assert content is not None
    assert lexical_text(content) == (
        "question: How many singers?\n"
        "failure: attempted_sql=SELECT nam FROM singer; status=EXECUTION_ERROR; db_error=(none)\n"
        "delta: SELECT nam FROM singer => SELECT name FROM singer\n"
        "type: Schema Linking\n"
        "outcome: CORRECT\n"
        "error: (none)\n"
        "direction: SELECT name FROM singer"
    )


def test_tokens_are_lower_case_words_digits_and_underscores_with_repeats() -> None:
    assert tokens("SELECT a_1, b.C FROM `a_1` -- 'É'") == ["select", "a_1", "b", "c", "from", "a_1"]


def test_lone_surrogates_do_not_reach_encoder_or_index(observe: Observe) -> None:
    content = observe(0, question="bad \ud800 text").content
    assert content is not None
    assert dense_text(content, MemoryText.COMPACT).startswith("question: bad ? text\n")
