"""The memory on disk: kills, torn and damaged files, foreign and damaged Chroma directories, refusals."""

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from merit_sql.domain.errors import DataError, IdentityError
from merit_sql.domain.memory import Gate, MemoryQuery, Observation, Retrieved
from merit_sql.models.hashing import HashingEncoder
from merit_sql.stores.dense import PAGE
from merit_sql.stores.episodic import EpisodicMemory
from merit_sql.stores.journal import StoreBusyError, StoreError
from merit_sql.stores.ranking import RetrievalPolicy
from merit_sql.stores.texts import MemoryText, dense_text

Observe = Callable[..., Observation]

COMMITTER = """
import sys
from pathlib import Path
from merit_sql.domain.failure import FailureKind
from merit_sql.domain.memory import Observation, Provenance, Transition
from merit_sql.domain.status import Polarity, Regime, Status
from merit_sql.models.hashing import HashingEncoder
from merit_sql.stores.episodic import EpisodicMemory

with EpisodicMemory.open(Path(sys.argv[1]), HashingEncoder()) as memory:
    position = memory.next_position()
    for position in range(position, position + 2000):
        content = Transition(
            question=f"question {position}", schema="", database_id="d",
            error_type=FailureKind.SYNTAX, failed_sql="x", status=Status.EXECUTION_ERROR,
            db_error="e", sql_delta=f"x => {position}", outcome=Status.CORRECT,
        )
        provenance = Provenance(
            run="r", method="m", regime=Regime.DENOTATION_CONFIRMED, query_id=str(position),
            database_id="d", position=position, step=1, retrieved_ids=(), polarity=Polarity.POSITIVE,
        )
        memory.commit(Observation.of(provenance, content))
        print(position, flush=True)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingEncoder(HashingEncoder):
    """A `HashingEncoder` that remembers what it was asked."""

    asked: list[str] = field(default_factory=list)

    def encode(self, texts: Sequence[str]) -> Any:
        self.asked.extend(texts)
        return HashingEncoder(dimension=self.dimension).encode(texts)


def fill(folder: Path, observe: Observe, count: int = 6) -> str:
    with EpisodicMemory.open(folder, HashingEncoder()) as memory:
        memory.commit_all([observe(i, sql_delta=f"x => {i % 4}", question=f"w{i}") for i in range(count)])
        return memory.digest()


def served(memory: EpisodicMemory, ask: MemoryQuery) -> Retrieved:
    gate = Gate(query_id="asking", database_id="d", position=99)
    return memory.retrieve(ask, gate, RetrievalPolicy())


def test_a_killed_process_loses_nothing_that_it_committed(tmp_path: Path) -> None:
    said: list[int] = []
    kills = 2
    for _ in range(kills):
        child = subprocess.Popen(
            [sys.executable, "-c", COMMITTER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        with child, child.stdout:
            said += [int(child.stdout.readline()) for _ in range(6)]
            child.send_signal(signal.SIGKILL)
            said += [int(line) for line in child.stdout]
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        kept = [one.provenance.position for one in memory.observations]
        digest = memory.digest()
    assert kept == list(range(len(kept)))
    assert set(said) <= set(kept)
    # Each kill may fall between a commit and the line that says so.
    assert len(kept) - len(said) <= kills
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        assert memory.digest() == digest


def test_reopening_serves_the_same_without_encoding_anything_again(
    tmp_path: Path, observe: Observe, ask: MemoryQuery
) -> None:
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        memory.commit_all([observe(i, question=f"w{i}", sql_delta=f"x => {i % 4}") for i in range(6)])
        before, digest = served(memory, ask), memory.digest()
    encoder = CountingEncoder()
    with EpisodicMemory.open(tmp_path, encoder) as memory:
        assert encoder.asked == []
        assert (served(memory, ask), memory.digest()) == (before, digest)
        assert len(encoder.asked) == 1


def test_more_records_than_a_page_are_read_back(tmp_path: Path, observe: Observe) -> None:
    count = PAGE + 3
    with EpisodicMemory.open(tmp_path, HashingEncoder(dimension=4)) as memory:
        memory.commit_all([observe(i) for i in range(count)])
    encoder = CountingEncoder(dimension=4)
    with EpisodicMemory.open(tmp_path, encoder) as memory:
        assert len(memory.observations) == count
    assert encoder.asked == []


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_torn_last_line_is_repaired(tmp_path: Path, observe: Observe, cut: int) -> None:
    """One byte less is a whole line without its end, and stays; with more gone the line never was."""
    fill(tmp_path, observe, 3)
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-cut])
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        assert [one.provenance.position for one in memory.observations] == ([0, 1, 2] if cut == 1 else [0, 1])
        memory.commit(observe(7))
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        assert memory.observations[-1].provenance.position == 7


def test_a_torn_first_line_begins_anew(tmp_path: Path, observe: Observe) -> None:
    fill(tmp_path, observe, 0)
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:20])
    assert fill(tmp_path, observe, 1) == fill(tmp_path / "other", observe, 1)


def flip(lines: list[bytes]) -> None:
    lines[2] = lines[2].replace(b"w1", b"w7")


def drop(lines: list[bytes]) -> None:
    del lines[2]


def swap(lines: list[bytes]) -> None:
    lines[2], lines[3] = lines[3], lines[2]


def garble(lines: list[bytes]) -> None:
    lines[2] = b"\xff{]"


def repeat(lines: list[bytes]) -> None:
    lines.insert(2, lines[1])


def empty(lines: list[bytes]) -> None:
    lines.insert(2, b"")


@pytest.mark.parametrize("damage", [flip, drop, swap, garble, repeat, empty])
def test_a_damaged_line_in_the_middle_is_an_error_that_names_it(
    tmp_path: Path, observe: Observe, damage: Callable[[list[bytes]], None]
) -> None:
    fill(tmp_path, observe, 4)
    journal = tmp_path / "journal.jsonl"
    lines = journal.read_bytes().split(b"\n")
    damage(lines)
    damaged = b"\n".join(lines)
    journal.write_bytes(damaged)
    with pytest.raises(DataError, match=r"journal\.jsonl:3: is damaged"):
        EpisodicMemory.open(tmp_path, HashingEncoder())
    assert journal.read_bytes() == damaged


def test_a_last_line_that_is_whole_and_wrong_is_no_torn_line(tmp_path: Path, observe: Observe) -> None:
    fill(tmp_path, observe, 2)
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"w1", b"w2"))
    with pytest.raises(DataError, match=r"journal\.jsonl:3"):
        EpisodicMemory.open(tmp_path, HashingEncoder())


@pytest.mark.parametrize(
    ("encoder", "memory_text", "named"),
    [
        ({"id": "other"}, MemoryText.COMPACT, "encoder 'hashing'.*'other'"),
        ({"revision": "2"}, MemoryText.COMPACT, "revision 'blake2b-1'.*'2'"),
        ({"dimension": 8}, MemoryText.COMPACT, "dimension 64.*8"),
        ({}, MemoryText.PAPER, "memory_text 'compact'.*'paper'"),
    ],
)
@pytest.mark.parametrize("chroma", ["kept", "deleted"])
def test_another_encoder_is_refused_by_name_and_nothing_changes(
    tmp_path: Path,
    observe: Observe,
    encoder: dict[str, Any],
    memory_text: MemoryText,
    named: str,
    chroma: str,
) -> None:
    digest = fill(tmp_path, observe)
    if chroma == "deleted":
        shutil.rmtree(tmp_path / "chroma")
    other = HashingEncoder(dimension=encoder.get("dimension", 64))
    for name in encoder.keys() - {"dimension"}:
        object.__setattr__(other, name, encoder[name])
    with pytest.raises(IdentityError, match=named):
        EpisodicMemory.open(tmp_path, other, memory_text=memory_text)
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        assert memory.digest() == digest


def delete(chroma: Path) -> None:
    shutil.rmtree(chroma)


def become_a_file(chroma: Path) -> None:
    shutil.rmtree(chroma)
    chroma.write_text("not a directory")


def be_emptied(chroma: Path) -> None:
    for path in chroma.iterdir():
        path.unlink() if path.is_file() else shutil.rmtree(path)


def overwrite_database(chroma: Path) -> None:
    (chroma / "chroma.sqlite3").write_bytes(b"this is no database " * 500)


def truncate_database(chroma: Path) -> None:
    path = chroma / "chroma.sqlite3"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def corrupt_pages(chroma: Path) -> None:
    path = chroma / "chroma.sqlite3"
    data = bytearray(path.read_bytes())
    for start in range(8192, len(data), 16384):
        data[start : start + 4096] = b"\xa5" * len(data[start : start + 4096])
    path.write_bytes(data)


def corrupt_index_files(chroma: Path) -> None:
    for path in chroma.glob("*/*.bin"):
        path.write_bytes(b"\xa5" * 1000)


def change_a_document(chroma: Path) -> None:
    path = chroma / "chroma.sqlite3"
    data = path.read_bytes()
    assert b"question: w3" in data
    path.write_bytes(data.replace(b"question: w3", b"question: w9"))


DAMAGES = [
    delete,
    become_a_file,
    be_emptied,
    overwrite_database,
    truncate_database,
    corrupt_pages,
    corrupt_index_files,
    change_a_document,
]


@pytest.mark.parametrize("sealed", [True, False], ids=["closed", "killed"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_chroma_directory_is_made_again(
    tmp_path: Path, observe: Observe, ask: MemoryQuery, damage: Callable[[Path], None], sealed: bool
) -> None:
    digest = fill(tmp_path, observe)
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        before = served(memory, ask)
    damage(tmp_path / "chroma")
    if not sealed:
        (tmp_path / "chroma.seal").unlink()
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        assert (memory.digest(), served(memory, ask)) == (digest, before)
        memory.commit(observe(50))
    encoder = CountingEncoder()
    with EpisodicMemory.open(tmp_path, encoder) as memory:
        assert encoder.asked == []
        assert len(memory.observations) == 7


def test_vectors_that_were_changed_are_found_and_made_again(
    tmp_path: Path, observe: Observe, ask: MemoryQuery
) -> None:
    fill(tmp_path, observe)
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        before = served(memory, ask)
    path = tmp_path / "chroma" / "chroma.sqlite3"
    text = dense_text(before.memories[0].entry.content, MemoryText.COMPACT)
    vector = HashingEncoder().encode([text])[0]
    data = path.read_bytes()
    assert vector.tobytes() in data
    path.write_bytes(data.replace(vector.tobytes(), (-vector).tobytes()))
    (tmp_path / "chroma.seal").unlink()
    encoder = CountingEncoder()
    with EpisodicMemory.open(tmp_path, encoder) as memory:
        assert encoder.asked == [text]
        assert served(memory, ask) == before


def test_a_lagging_chroma_directory_is_brought_up_with_what_it_lacks(
    tmp_path: Path, observe: Observe, ask: MemoryQuery
) -> None:
    fill(tmp_path / "a", observe, 3)
    shutil.copytree(tmp_path / "a" / "chroma", tmp_path / "old")
    digest = fill(tmp_path / "a", observe, 6)
    shutil.rmtree(tmp_path / "a" / "chroma")
    shutil.copytree(tmp_path / "old", tmp_path / "a" / "chroma")
    (tmp_path / "a" / "chroma.seal").unlink()
    encoder = CountingEncoder()
    with EpisodicMemory.open(tmp_path / "a", encoder) as memory:
        assert memory.digest() == digest
    assert [text.split("\n")[0] for text in encoder.asked] == ["question: w3", "question: w4", "question: w5"]


def test_a_foreign_chroma_directory_gives_way_to_the_journal(
    tmp_path: Path, observe: Observe, ask: MemoryQuery
) -> None:
    digest = fill(tmp_path / "a", observe, 4)
    with EpisodicMemory.open(tmp_path / "a", HashingEncoder()) as memory:
        before = served(memory, ask)
    with EpisodicMemory.open(tmp_path / "b", HashingEncoder(dimension=8)) as memory:
        memory.commit_all([observe(i, run="another") for i in range(6)])
    with EpisodicMemory.open(tmp_path / "c", HashingEncoder()) as memory:
        memory.commit_all([observe(i, run="a third") for i in range(6)])
    for foreign in ("b", "c"):
        shutil.rmtree(tmp_path / "a" / "chroma")
        shutil.copytree(tmp_path / foreign / "chroma", tmp_path / "a" / "chroma")
        shutil.copy(tmp_path / foreign / "chroma.seal", tmp_path / "a" / "chroma.seal")
        with EpisodicMemory.open(tmp_path / "a", HashingEncoder()) as memory:
            assert (memory.digest(), served(memory, ask)) == (digest, before)


def test_damage_that_shows_at_a_commit_is_healed_there(tmp_path: Path, observe: Observe) -> None:
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        memory.commit_all([observe(i) for i in range(3)])
        corrupt_pages(tmp_path / "chroma")
        overwrite_database(tmp_path / "chroma")
        memory.commit(observe(5))
    encoder = CountingEncoder()
    with EpisodicMemory.open(tmp_path, encoder) as memory:
        assert len(memory.observations) == 4
    assert encoder.asked == []


def test_what_is_imported_without_text_is_kept_across_a_reopening(tmp_path: Path, observe: Observe) -> None:
    bare = replace(observe(1), content=None)
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        memory.commit_all([observe(0), bare])
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        assert memory.observations == (observe(0), bare)


def test_a_second_opening_is_refused_at_once_here_and_in_another_process(
    tmp_path: Path, observe: Observe
) -> None:
    with EpisodicMemory.open(tmp_path, HashingEncoder()):
        with pytest.raises(StoreBusyError, match="open elsewhere"):
            EpisodicMemory.open(tmp_path, HashingEncoder())
        child = subprocess.run(
            [sys.executable, "-c", COMMITTER, str(tmp_path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert child.returncode != 0
        assert "StoreBusyError" in child.stderr
    fill(tmp_path, observe, 1)


def test_a_failed_opening_leaves_the_folder_free(tmp_path: Path, observe: Observe) -> None:
    digest = fill(tmp_path, observe)
    with pytest.raises(IdentityError):
        EpisodicMemory.open(tmp_path, HashingEncoder(dimension=3))
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        assert memory.digest() == digest


def test_a_journal_that_changes_under_the_memory_stops_the_commit(tmp_path: Path, observe: Observe) -> None:
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        memory.commit(observe(0))
        with (tmp_path / "journal.jsonl").open("ab") as journal:
            journal.write(b"something\n")
        with pytest.raises(StoreError, match="changed under"):
            memory.commit(observe(1))
        assert len(memory.observations) == 1


def test_a_full_disk_keeps_nothing_and_the_next_commit_works(
    tmp_path: Path, observe: Observe, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        real(descriptor, data[:10])
        raise OSError(28, "No space left on device")

    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        memory.commit(observe(0))
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(StoreError, match="No space"):
            memory.commit(observe(1))
        monkeypatch.undo()
        memory.commit(observe(2))
    with EpisodicMemory.open(tmp_path, HashingEncoder()) as memory:
        assert [one.provenance.position for one in memory.observations] == [0, 2]


def test_the_folder_is_private_and_can_be_deleted_and_used_again(tmp_path: Path, observe: Observe) -> None:
    folder = tmp_path / "deep" / "memory"
    digest = fill(folder, observe, 2)
    assert stat.S_IMODE((folder / "journal.jsonl").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "chroma").stat().st_mode) == 0o700
    shutil.rmtree(folder)
    assert fill(folder, observe, 2) == digest


def test_journal_lines_are_ascii_json_with_their_checksums(tmp_path: Path, observe: Observe) -> None:
    digest = fill(tmp_path, observe, 2)
    header, *lines = (tmp_path / "journal.jsonl").read_text("ascii").splitlines()
    assert json.loads(header)["header"] == {
        "encoder": "hashing",
        "revision": "blake2b-1",
        "dimension": 64,
        "memory_text": "compact",
    }
    assert [list(json.loads(line)) for line in lines] == [["check", "observation"]] * 2
    assert json.loads(lines[-1])["check"] == digest


def test_chroma_keeps_documents_and_metadata_and_its_settings(tmp_path: Path, observe: Observe) -> None:
    from chromadb.api.client import Client
    from chromadb.config import Settings

    fill(tmp_path, observe, 2)
    settings = Settings(
        is_persistent=True, persist_directory=str(tmp_path / "chroma"), anonymized_telemetry=False
    )
    with Client(settings=settings) as client:
        collection = client.get_collection("merit_observations", embedding_function=None)
        found = collection.get(where={"position": 1}, include=["documents", "metadatas"])
    assert collection.metadata == {
        "encoder": "hashing",
        "revision": "blake2b-1",
        "dimension": 64,
        "memory_text": "compact",
    }
    assert collection.configuration_json["hnsw"]["space"] == "ip"
    assert found["documents"] is not None and found["metadatas"] is not None
    assert found["documents"][0].startswith("question: w1\n")
    assert found["metadatas"][0]["query_id"] == "q1"
    assert None not in found["metadatas"][0].values()


def test_nothing_goes_to_the_network(
    tmp_path: Path, observe: Observe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise AssertionError(f"a connection was tried: {args}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    fill(tmp_path, observe, 2)
