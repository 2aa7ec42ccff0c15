"""The reply record: its key, its file, and the model that answers from it."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from merit_sql.domain.errors import ModelError
from merit_sql.models.chat import get_chat_model, identity
from merit_sql.models.decoding import Decoding
from merit_sql.models.identity import ModelIdentity
from merit_sql.models.record import (
    RecordedChatModel,
    RecordError,
    Reply,
    ReplyRecord,
    open_record,
    recorded_identity,
    reply_key,
    write_shards,
)
from merit_sql.models.scripted import ScriptedChatModel

ONE = ModelIdentity(kind="embedded", model="m", revision="r")
GREEDY = Decoding().call_options()


@pytest.fixture
def record(tmp_path: Path) -> Iterator[ReplyRecord]:
    with ReplyRecord(tmp_path / "run" / "replies.sqlite") as made:
        yield made


def over(inner: ScriptedChatModel, *records: Any) -> RecordedChatModel:
    return RecordedChatModel(inner=inner, records=records, identity=inner.identity)


def reply(text: str = "SELECT 1", **changes: Any) -> Reply:
    return Reply(**{"text": text, "prompt_tokens": 7, "output_tokens": 2, "finish_reason": "stop", **changes})


def key(
    messages: list[BaseMessage] | None = None,
    model: ModelIdentity = ONE,
    stop: list[str] | None = None,
    **options: Any,
) -> str:
    return reply_key(messages or [HumanMessage("q")], model, {**GREEDY, **options}, stop)


def test_the_key_tells_apart_all_that_may_change_a_reply() -> None:
    variants = [
        key(),
        key([HumanMessage("q2")]),
        key([SystemMessage("q")]),
        key([HumanMessage("q"), HumanMessage("q")]),
        key(model=ModelIdentity(kind="embedded", model="m2", revision="r")),
        key(model=ModelIdentity(kind="embedded", model="m", revision="r2")),
        key(temperature=0.4),
        key(top_p=0.9),
        key(max_tokens=511),
        key(stop=[";"]),
        key(stop=[";", "x"]),
        key(seed=1),
        key(seed=2),
    ]
    assert len(set(variants)) == len(variants)


def test_the_key_knows_no_difference_where_there_is_none() -> None:
    assert key() == key(temperature=0, top_p=1, seed=None, stop=[])
    assert key() == key(model=ModelIdentity(kind="embedded", model="m", revision="r", runtime="newer"))
    assert key() == key([HumanMessage([{"type": "text", "text": "q"}])])


def test_an_option_that_the_key_does_not_hold_is_refused() -> None:
    with pytest.raises(ModelError, match="logit_bias cannot be told apart"):
        key(logit_bias={})


def test_the_second_ask_is_answered_from_the_record_alike(record: ReplyRecord) -> None:
    inner = ScriptedChatModel(replies=["SELECT 1"])
    model = over(inner, record)
    first, second = (model.invoke("q", **GREEDY) for _ in range(2))
    assert (first.text, first.usage_metadata) == (second.text, second.usage_metadata)
    assert [first.response_metadata["recorded"], second.response_metadata["recorded"]] == [False, True]
    assert second.response_metadata["finish_reason"] == "stop"
    assert second.response_metadata["seconds"] >= 0.0
    assert len(inner.prompts) == 1
    assert model.meter().calls == 1
    assert model.meter().seconds > 0.0


def test_the_inner_model_gets_the_call_as_it_was(record: ReplyRecord) -> None:
    inner = ScriptedChatModel(replies=["a"])
    over(inner, record).invoke("q", temperature=0.4, seed=1, max_tokens=9, stop=[";"])
    assert inner.options == [{"temperature": 0.4, "seed": 1, "max_tokens": 9, "stop": [";"]}]


def test_draws_of_one_prompt_are_recorded_apart(record: ReplyRecord) -> None:
    model = over(ScriptedChatModel(replies=["greedy", "first", "second"]), record)
    draws = [Decoding(), *(Decoding(temperature=0.8, seed=n, draw=n) for n in (1, 2))]
    asked = [[model.invoke("q", **draw.call_options()).text for draw in draws] for _ in range(2)]
    assert asked == [["greedy", "first", "second"]] * 2


def test_unknown_usage_stays_unknown(record: ReplyRecord) -> None:
    model = over(ScriptedChatModel(replies=["a"], reports_usage=False), record)
    assert [model.invoke("q").usage_metadata for _ in range(2)] == [None, None]
    assert next(record.items())[2].prompt_tokens is None


def test_any_text_comes_back_as_it_was(record: ReplyRecord) -> None:
    strange = "SELECT 'é𝄞\x00\ud800' -- \r\n\t"
    model = over(ScriptedChatModel(replies=[strange]), record)
    assert [model.invoke("q \udcff").text for _ in range(2)] == [strange, strange]


def test_what_is_put_first_stays(record: ReplyRecord) -> None:
    assert record.put("k", ONE, reply("first")).text == "first"
    assert record.put("k", ONE, reply("second")).text == "first"
    record.put_verdict("v", {"strict": 1})
    record.put_verdict("v", {"strict": 0})
    assert record.get_verdict("v") == {"strict": 1}
    assert (record.get("other"), record.get_verdict("other")) == (None, None)


def test_the_file_is_private_and_holds_no_prompt(record: ReplyRecord) -> None:
    over(ScriptedChatModel(replies=["a"]), record).invoke("the canary in the prompt")
    assert record.path.stat().st_mode & 0o777 == 0o600
    record.close()
    assert all(b"canary" not in path.read_bytes() for path in record.path.parent.iterdir())


def test_a_file_that_others_could_read_is_closed_to_them(record: ReplyRecord) -> None:
    record.close()
    record.path.chmod(0o644)
    ReplyRecord(record.path).close()
    assert record.path.stat().st_mode & 0o777 == 0o600


def test_a_record_outlives_its_process(record: ReplyRecord) -> None:
    over(ScriptedChatModel(replies=["a"]), record).invoke("q", **GREEDY)
    record.close()
    with ReplyRecord(record.path) as again:
        assert over(ScriptedChatModel(replies=[]), again).invoke("q", **GREEDY).text == "a"


def test_given_replies_are_used_first_and_copied_into_the_own_record(
    record: ReplyRecord, tmp_path: Path
) -> None:
    with ReplyRecord(tmp_path / "given.sqlite") as given:
        over(ScriptedChatModel(replies=["given"]), given).invoke("q")
    before = given.path.read_bytes()
    source = open_record(given.path)
    inner = ScriptedChatModel(replies=["asked"])
    model = over(inner, record, source)
    assert [model.invoke("q").text, model.invoke("new").text] == ["given", "asked"]
    assert len(list(record.items())) == 2
    assert model.meter().calls == 1
    assert given.path.read_bytes() == before


def test_a_replay_asks_nobody_and_a_miss_says_so(record: ReplyRecord) -> None:
    inner = ScriptedChatModel(replies=["a"])
    over(inner, record).invoke("q", **GREEDY)
    record.close()
    replay = get_chat_model(f"replay:{record.path}")
    assert identity(replay) == inner.identity
    assert replay.invoke("q", **GREEDY).text == "a"
    with pytest.raises(ModelError, match=r"no reply .* for scripted:scripted .* no model was asked"):
        replay.invoke("q2", **GREEDY)


def test_a_replay_of_several_models_wants_one_chosen(record: ReplyRecord) -> None:
    for name in ("small", "large"):
        over(ScriptedChatModel(replies=[f"by {name}"], model_name=name), record).invoke("q")
    with pytest.raises(ModelError, match=r"2 models; choose one: .*small.*large|.*large.*small"):
        get_chat_model(f"replay:{record.path}")
    with pytest.raises(ModelError, match="'tiny' fits 0 of them"):
        get_chat_model(f"replay:{record.path}", chosen="tiny")
    for chosen in ("large", "scripted:large", recorded_identity(record, "large").digest()[:12]):
        assert get_chat_model(f"replay:{record.path}", chosen=chosen).invoke("q").text == "by large"


def test_an_empty_record_cannot_be_replayed(record: ReplyRecord) -> None:
    record.close()
    with pytest.raises(ModelError, match="holds no replies"):
        get_chat_model(f"replay:{record.path}")


def test_a_record_is_needed_that_can_take_what_is_asked(record: ReplyRecord) -> None:
    record.put("k", ONE, reply())
    inner = ScriptedChatModel(replies=[])
    for records in ((), (open_record(record.path),)):
        with pytest.raises(ValueError, match="record"):
            RecordedChatModel(inner=inner, records=records, identity=ONE)


def test_threads_that_ask_the_same_ask_once(record: ReplyRecord) -> None:
    gate = threading.Barrier(6, timeout=20)
    inner = ScriptedChatModel(replies=lambda prompt: prompt + "!")
    model = over(inner, record)

    def ask(number: int) -> str:
        gate.wait()
        return model.invoke(f"q{number % 2}").text

    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(ask, range(6)))
    assert replies == ["q0!", "q1!"] * 3
    assert sorted(inner.prompts) == ["q0", "q1"]
    assert model.meter().calls == 2


def test_a_failure_of_the_model_is_not_recorded(record: ReplyRecord) -> None:
    model = over(ScriptedChatModel(replies=[]), record)
    with pytest.raises(ModelError):
        model.invoke("q")
    assert list(record.items()) == []
    assert model.meter().calls == 0


WRITER = """
import sys
from pathlib import Path
from merit_sql.models.record import ReplyRecord, Reply
from merit_sql.models.identity import ModelIdentity
record = ReplyRecord(Path(sys.argv[1]))
one = ModelIdentity(kind="k", model="m", revision="r")
number = 0
while True:
    record.put(str(number), one, Reply(text="x" * 5000, prompt_tokens=1, output_tokens=1, finish_reason=None))
    print(number, flush=True)
    number += 1
"""


def test_a_killed_writer_loses_nothing_and_leaves_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        told = -1
        for line in writer.stdout:
            told = int(line)
            if told >= 60:
                os.kill(writer.pid, signal.SIGKILL)
                break
        told = max([told, *(int(line) for line in writer.stdout if line.strip())])
    kept = {key for key, _, _ in open_record(path).items()}
    assert {str(number) for number in range(told + 1)} <= kept
    with ReplyRecord(path) as record:
        assert record.put("more", ONE, reply()).text == "SELECT 1"


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for place in range(4096, len(data), 7):
        data[place] ^= 0xFF
    path.write_bytes(data)


def test_a_damaged_record_is_an_error_and_is_left_as_it_is(record: ReplyRecord) -> None:
    for number in range(200):
        record.put(str(number), ONE, reply("x" * 300))
    record.close()
    damage(record.path)
    before = record.path.read_bytes()
    for opened in (ReplyRecord, open_record):
        with pytest.raises(RecordError, match="damaged"):
            opened(record.path)
    assert record.path.read_bytes() == before


def test_a_record_with_a_value_of_another_form_is_damaged(record: ReplyRecord) -> None:
    record.put("k", ONE, reply())
    record.close()
    with sqlite3.connect(record.path) as connection:
        connection.execute("UPDATE replies SET value = '{\"text\": 3}'")
    connection.close()
    with ReplyRecord(record.path) as again, pytest.raises(RecordError):
        again.get("k")


def test_other_files_are_no_records_and_are_not_written_to(tmp_path: Path) -> None:
    text, database = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("just some notes, long enough to be no SQLite header at all\n" * 20)
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    for path in (text, database):
        before = path.read_bytes()
        for opened in (ReplyRecord, open_record):
            with pytest.raises(RecordError):
                opened(path)
        assert path.read_bytes() == before


def test_a_record_of_a_later_version_is_refused(record: ReplyRecord) -> None:
    record.close()
    with sqlite3.connect(record.path) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(RecordError, match="version 2"):
        ReplyRecord(record.path)


@pytest.mark.parametrize("name", ["missing.sqlite", "empty-folder"])
def test_there_must_be_something_to_replay(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty-folder").mkdir()
    with pytest.raises(RecordError):
        get_chat_model(f"replay:{tmp_path / name}")
    assert not (tmp_path / "missing.sqlite").exists()


def test_a_record_for_reading_takes_nothing(record: ReplyRecord) -> None:
    record.put("k", ONE, reply())
    reader = ReplyRecord(record.path, writable=False)
    with reader, pytest.raises(RecordError):
        reader.put("k2", ONE, reply())


def test_shards_hold_the_same_replies_and_give_the_same_bytes(record: ReplyRecord, tmp_path: Path) -> None:
    two = ModelIdentity(kind="embedded", model="m2", revision="r")
    strange = reply("é\ud800\n", prompt_tokens=None, output_tokens=None, finish_reason=None)
    for number in range(20):
        record.put(f"{number:02d}", ONE if number % 3 else two, reply(str(number)))
    record.put("strange", ONE, strange)
    paths = write_shards(record, tmp_path / "shards")
    again = write_shards(open_record(tmp_path / "shards"), tmp_path / "again")
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in again]
    for place in (tmp_path / "shards", paths[0]):
        opened = open_record(place)
        assert list(opened.items()) == list(record.items())
        assert opened.identities() == record.identities()
        assert opened.get("strange") == strange
        assert opened.get("absent") is None


def test_many_replies_become_several_shards_below_a_megabyte(record: ReplyRecord, tmp_path: Path) -> None:
    for number in range(300):
        record.put(f"{number:03d}", ONE, reply(os.urandom(5000).hex()))
    paths = write_shards(record, tmp_path / "shards")
    assert len(paths) > 1
    assert max(path.stat().st_size for path in paths) < 1_000_000
    assert len(list(open_record(tmp_path / "shards").items())) == 300


def test_a_shard_answers_as_the_record_did(record: ReplyRecord, tmp_path: Path) -> None:
    over(ScriptedChatModel(replies=["a"]), record).invoke("q", **GREEDY)
    write_shards(record, tmp_path / "shards")
    assert get_chat_model(f"replay:{tmp_path / 'shards'}").invoke("q", **GREEDY).text == "a"


def test_shards_are_not_mixed_with_what_lies_there(record: ReplyRecord, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("x")
    with pytest.raises(RecordError, match="not empty"):
        write_shards(record, tmp_path)


def test_a_damaged_shard_is_an_error(record: ReplyRecord, tmp_path: Path) -> None:
    record.put("k", ONE, reply())
    (path,) = write_shards(record, tmp_path / "shards")
    whole = path.read_bytes()
    for broken in (whole[: len(whole) // 2], whole[:40] + b"????" + whole[44:]):
        path.write_bytes(broken)
        with pytest.raises(RecordError, match="damaged"):
            open_record(path)
