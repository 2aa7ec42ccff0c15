"""The exchange format, version 3: out, in, and everything that is refused on the way in."""

import json
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merit_sql.domain.errors import DataError
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.memory import Gate, MemoryQuery, Observation
from merit_sql.domain.status import Polarity, Status
from merit_sql.models.hashing import HashingEncoder
from merit_sql.stores.episodic import EpisodicMemory
from merit_sql.stores.exchange import export_memory, import_memory
from merit_sql.stores.ranking import RetrievalPolicy

Observe = Callable[..., Observation]
NAMES = ("memory_positive.jsonl", "memory_negative.jsonl")


@pytest.fixture
def memory() -> Iterator[EpisodicMemory]:
    with EpisodicMemory.in_memory(HashingEncoder()) as store:
        yield store


@pytest.fixture
def exported(memory: EpisodicMemory, observe: Observe, tmp_path: Path) -> Path:
    """Two positives, the first seen three times, once refuted; one negative."""
    delta = "SELECT nam FROM singer => SELECT name FROM singer"
    memory.commit_all(
        [
            observe(0, retrieved_ids=("abc",)),
            observe(
                1,
                polarity=Polarity.NEGATIVE,
                sql_delta=delta,
                error_type=FailureKind.SCHEMA_LINKING,
            ),
            observe(2, sql_delta="a => b"),
            observe(3, question="Newest?"),
            observe(4, polarity=Polarity.NEGATIVE),
        ]
    )
    export_memory(memory, tmp_path / "out")
    return tmp_path / "out"


def test_a_line_has_exactly_the_fields_of_the_format(exported: Path) -> None:
    first, _ = (exported / NAMES[0]).read_text().splitlines()
    line = json.loads(first)
    assert list(line) == [
        "format_version",
        "id",
        "polarity",
        "error_type",
        "failure_context",
        "sql_delta",
        "normalized_delta",
        "outcome",
        "db_error",
        "successful_direction",
        "question",
        "schema",
        "database_id",
        "applicability",
        "confirmations",
        "successes",
        "failures",
        "observations",
    ]
    assert list(line["observations"][0]) == [
        "run",
        "method",
        "regime",
        "query_id",
        "database_id",
        "position",
        "step",
        "retrieved_ids",
        "polarity",
    ]
    assert line["format_version"] == 3
    assert (line["confirmations"], line["successes"], line["failures"]) == (3, 2, 1)
    assert line["question"] == "Newest?"
    assert line["applicability"] == "global"
    assert line["failure_context"] == (
        "attempted_sql=SELECT nam FROM singer; status=EXECUTION_ERROR; db_error=no such column: nam"
    )
    assert [(one["position"], one["polarity"]) for one in line["observations"]] == [
        (0, "positive"),
        (1, "negative"),
        (3, "positive"),
    ]
    assert line["observations"][0]["retrieved_ids"] == ["abc"]


def test_files_are_private(exported: Path) -> None:
    assert {stat.S_IMODE((exported / name).stat().st_mode) for name in NAMES} == {0o600}
    assert sorted(path.name for path in exported.iterdir()) == sorted(NAMES)


def test_the_round_trip_keeps_every_byte_and_what_is_served(
    exported: Path, memory: EpisodicMemory, tmp_path: Path, ask: MemoryQuery
) -> None:
    gate = Gate(query_id="asking", database_id="pets", position=9)
    with EpisodicMemory.in_memory(HashingEncoder()) as other:
        assert import_memory(other, exported) == 5
        assert import_memory(other, exported) == 0
        export_memory(other, tmp_path / "again")
        served = other.retrieve(ask, gate, RetrievalPolicy())
    assert [(tmp_path / "again" / name).read_bytes() for name in NAMES] == [
        (exported / name).read_bytes() for name in NAMES
    ]
    assert served == memory.retrieve(ask, gate, RetrievalPolicy())


TEXT = st.text(st.characters(codec=None, exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["; status=CORRECT; db_error=(none)", "(none)", "attempted_sql=", "😀", "a => b"]
)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(Polarity),
            st.sampled_from(["a => b", "A  =>  b", "c => d", "'x' => \"y\""]),
            TEXT,
            st.none() | TEXT,
            st.sampled_from(Status),
        ),
        max_size=12,
    )
)
def test_the_round_trip_holds_for_any_text_and_any_merging(
    rows: list[tuple[Polarity, str, str, str | None, Status]],
    observe: Observe,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("exchange")
    kind = FailureKind.UNKNOWN
    with (
        EpisodicMemory.in_memory(HashingEncoder()) as first,
        EpisodicMemory.in_memory(HashingEncoder()) as second,
    ):
        for position, (polarity, delta, text, error, status) in enumerate(rows):
            first.commit(
                observe(
                    position,
                    polarity=polarity,
                    error_type=kind,
                    sql_delta=delta,
                    failed_sql=text,
                    question=text,
                    db_error=error,
                    status=status,
                )
            )
        export_memory(first, folder / "one")
        import_memory(second, folder / "one")
        export_memory(second, folder / "two")
        assert len(second.observations) == len(rows)
    for name in NAMES:
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()


def test_an_older_text_is_exported_under_its_own_observation(
    memory: EpisodicMemory, observe: Observe, tmp_path: Path
) -> None:
    """The text is that of position 1; position 7, newer, came without one and must not be given it."""
    told = observe(1)
    bare = replace(observe(7), content=None)
    memory.commit_all([told, bare])
    export_memory(memory, tmp_path)
    with EpisodicMemory.in_memory(HashingEncoder()) as other:
        import_memory(other, tmp_path)
        assert [(one.provenance.position, one.content is not None) for one in other.observations] == [
            (7, False),
            (1, True),
        ]


def test_either_file_may_be_missing_but_not_both(
    exported: Path, memory: EpisodicMemory, tmp_path: Path
) -> None:
    (exported / NAMES[0]).unlink()
    with EpisodicMemory.in_memory(HashingEncoder()) as other:
        assert import_memory(other, exported) == 1
    with pytest.raises(DataError, match=r"memory_positive\.jsonl"):
        import_memory(memory, tmp_path)


def test_an_entry_of_which_only_counts_are_known_cannot_be_exported(
    memory: EpisodicMemory, observe: Observe, tmp_path: Path
) -> None:
    memory.commit(replace(observe(0), content=None))
    with pytest.raises(DataError, match="cannot be exported"):
        export_memory(memory, tmp_path)


def set_field(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda line: line.update({name: value})


def in_observation(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda line: line["observations"][0].update({name: value})


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (set_field("format_version", 2), "format_version is 2, expected 3"),
        (set_field("id", "0" * 64), "not the hash"),
        (set_field("sql_delta", "other => text"), "normalized_delta"),
        (set_field("normalized_delta", "other=>text"), "normalized_delta"),
        (set_field("error_type", "Syntax"), "not the hash"),
        (set_field("error_type", "Nonsense"), "Nonsense"),
        (set_field("polarity", "negative"), "polarity"),
        (set_field("outcome", "WON"), "WON"),
        (set_field("applicability", "everywhere"), "everywhere"),
        (set_field("question", None), "question must be a text"),
        (set_field("db_error", "another"), "failure_context"),
        (set_field("failure_context", "attempted_sql=x"), "failure_context"),
        (set_field("database_id", "pets"), "'pets'"),
        (set_field("confirmations", 4), "confirmations"),
        (set_field("successes", 3), "successes"),
        (set_field("failures", True), "failures"),
        (set_field("observations", []), "confirmations"),
        (set_field("observations", None), "NoneType"),
        (set_field("surplus", 1), "unknown: surplus"),
        (lambda line: line.pop("schema"), "missing: schema"),
        (in_observation("position", -1), "position"),
        (in_observation("position", 1.0), "position"),
        (in_observation("position", 2**63), "position"),
        (in_observation("regime", "guessed"), "guessed"),
        (in_observation("retrieved_ids", "abc"), "retrieved_ids"),
        (in_observation("retrieved_ids", [1]), "retrieved_ids"),
        (in_observation("polarity", "negative"), "successes"),
        (in_observation("gold", "SELECT 1"), "unknown: gold"),
        (lambda line: line["observations"][0].pop("step"), "missing: step"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_imported(
    exported: Path, change: Callable[[dict[str, Any]], None], complaint: str
) -> None:
    path = exported / NAMES[0]
    lines = path.read_text().splitlines()
    line = json.loads(lines[1])
    change(line)
    path.write_text(f"{lines[0]}\n{json.dumps(line)}\n")
    refused(exported, f"{NAMES[0]}:2: .*{complaint}")


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"id": "x"} {}'], ids=repr
)
def test_a_line_that_is_no_entry_is_named(exported: Path, line: bytes) -> None:
    path = exported / NAMES[1]
    path.write_bytes(path.read_bytes() + line + b"\n")
    refused(exported, f"{NAMES[1]}:2: ")


def test_an_observation_belongs_to_one_entry(
    exported: Path, memory: EpisodicMemory, observe: Observe
) -> None:
    with EpisodicMemory.in_memory(HashingEncoder()) as other:
        other.commit(observe(2, sql_delta="x => y"))
        before = other.digest()
        with pytest.raises(DataError, match=rf"{NAMES[0]}:2: .*already"):
            import_memory(other, exported)
        assert other.digest() == before


def refused(folder: Path, complaint: str) -> None:
    with EpisodicMemory.in_memory(HashingEncoder()) as other:
        empty = other.digest()
        with pytest.raises(DataError, match=complaint):
            import_memory(other, folder)
        assert other.digest() == empty
