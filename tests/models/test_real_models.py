"""The real embedded models: replies, usage, draws, prompts that do not fit; the real encoder."""

import hashlib
import http.client
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from merit_sql.domain.errors import ModelError
from merit_sql.models.decoding import Decoding
from merit_sql.models.download import folder_of
from merit_sql.models.embedded import EmbeddedChatModel
from merit_sql.models.encoder import EmbeddedEncoder, get_encoder
from merit_sql.models.files import present
from merit_sql.models.record import RecordedChatModel, ReplyRecord
from merit_sql.models.registry import MINILM_L6_V2, QWEN_CODER_0_5B, QWEN_CODER_1_5B, Weights

pytestmark = pytest.mark.model

QUESTION = "Table dog(id, name). Write one SQL query that counts the dogs. Answer with the SQL only."


def need(weights: Weights) -> None:
    if not present(weights, folder_of(weights)):
        pytest.skip(f"the weights are not in the cache: merit model pull {weights.name}")


@pytest.fixture(scope="module")
def small() -> EmbeddedChatModel:
    need(QWEN_CODER_0_5B)
    return EmbeddedChatModel(weights=QWEN_CODER_0_5B)


@pytest.fixture(scope="module")
def encoder() -> EmbeddedEncoder:
    need(MINILM_L6_V2)
    return EmbeddedEncoder()


def test_a_reply_has_sql_usage_a_reason_and_timings(small: EmbeddedChatModel) -> None:
    reply = small.invoke(QUESTION, **Decoding(max_tokens=48).call_options())
    assert "count(" in reply.text.lower()
    usage = reply.usage_metadata
    assert usage is not None
    # 16 words of system line and frame, and the question: more tokens than words, fewer than characters.
    assert len(QUESTION.split()) + 16 < usage["input_tokens"] < len(QUESTION)
    assert 0 < usage["output_tokens"] <= 48
    assert reply.response_metadata["finish_reason"] in ("stop", "length")
    assert reply.response_metadata["timings"]["predicted_n"] == usage["output_tokens"]


def test_the_limit_and_the_stop_texts_are_honoured(small: EmbeddedChatModel) -> None:
    short = small.invoke(QUESTION, temperature=0.0, max_tokens=3)
    assert short.usage_metadata is not None
    assert (short.usage_metadata["output_tokens"], short.response_metadata["finish_reason"]) == (3, "length")
    stopped = small.invoke("Say: one two three four five", temperature=0.0, max_tokens=40, stop=["three"])
    assert "three" not in stopped.text
    assert stopped.response_metadata["finish_reason"] == "stop"


def test_a_draw_is_repeatable_and_another_draw_is_another(small: EmbeddedChatModel) -> None:
    def draw(seed: int) -> str:
        decoding = Decoding(temperature=1.2, max_tokens=24, seed=seed, draw=seed)
        return small.invoke("Tell me a story about a dog.", **decoding.call_options()).text

    draw(1)
    assert draw(1) == draw(1)
    assert len({draw(seed) for seed in (1, 2, 3)}) > 1


def test_the_shared_prefix_is_not_computed_again(small: EmbeddedChatModel) -> None:
    schema = "CREATE TABLE dog (id INTEGER, name TEXT, age INTEGER);\n" * 12
    first = small.invoke(f"{schema}Count the dogs.", temperature=0.0, max_tokens=1)
    second = small.invoke(f"{schema}List the dogs.", temperature=0.0, max_tokens=1)
    timings = second.response_metadata["timings"]
    assert timings["cache_n"] > 10 * timings["prompt_n"]
    assert first.usage_metadata is not None
    assert second.usage_metadata is not None
    assert second.usage_metadata["input_token_details"]["cache_read"] == timings["cache_n"]


def test_a_prompt_that_does_not_fit_is_an_error_that_gives_both_numbers(small: EmbeddedChatModel) -> None:
    with pytest.raises(
        ModelError, match=r"qwen2\.5-coder-0\.5b did not answer: .*90\d\d tokens.*8192 tokens"
    ):
        small.invoke("dog " * 9000, temperature=0.0, max_tokens=4)
    assert small.invoke("Say yes.", max_tokens=2).text


def test_an_option_it_does_not_know_is_refused(small: EmbeddedChatModel) -> None:
    with pytest.raises(ModelError, match="does not know the option logit_bias"):
        small.invoke("q", logit_bias={})


def test_text_that_is_no_utf8_reaches_the_model(small: EmbeddedChatModel) -> None:
    assert small.invoke("Say yes. \ud800", max_tokens=2).usage_metadata is not None


def test_threads_are_answered_each_with_its_own_reply(small: EmbeddedChatModel) -> None:
    def say(word: str) -> str:
        return small.invoke(f"Repeat this one word and nothing else: {word}", max_tokens=6).text.lower()

    words = ["apple", "house", "river"]
    with ThreadPoolExecutor(3) as pool:
        replies = list(pool.map(say, words))
    assert [word in reply for word, reply in zip(words, replies, strict=True)] == [True] * 3


def test_one_server_serves_all_models_of_the_same_weights_and_settings(small: EmbeddedChatModel) -> None:
    assert EmbeddedChatModel(weights=QWEN_CODER_0_5B).server() is small.server()


def test_strangers_on_the_loopback_interface_are_turned_away(small: EmbeddedChatModel) -> None:
    host, port = small.server().listening_address.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    body = json.dumps({"messages": [{"role": "user", "content": "q"}], "max_tokens": 1})
    connection.request("POST", "/v1/chat/completions", body)
    response = connection.getresponse()
    response.read()
    connection.close()
    assert response.status == 401


def test_a_real_reply_is_recorded_and_given_again(small: EmbeddedChatModel, tmp_path: Path) -> None:
    with ReplyRecord(tmp_path / "replies.sqlite") as record:
        model = RecordedChatModel(inner=small, records=[record], identity=small.identity)
        first, second = (model.invoke(QUESTION, temperature=0.0, max_tokens=8) for _ in range(2))
    assert (first.text, second.text) == (first.text, first.text)
    assert "timings" in first.response_metadata
    assert model.meter().calls == 1


def gguf_template(path: Path) -> str:
    """The chat template in a GGUF file, found by its key: a little-endian type 8 (string) and its length."""
    key = b"tokenizer.chat_template"
    with path.open("rb") as file:
        start = file.read(16 * 2**20)
    place = start.index(key) + len(key)
    assert int.from_bytes(start[place : place + 4], "little") == 8
    length = int.from_bytes(start[place + 4 : place + 12], "little")
    return start[place + 12 : place + 12 + length].decode()


@pytest.mark.parametrize("weights", [QWEN_CODER_0_5B, QWEN_CODER_1_5B], ids=lambda weights: weights.name)
def test_the_recorded_template_and_system_line_are_those_of_the_weights(weights: Weights) -> None:
    need(weights)
    template = gguf_template(folder_of(weights) / weights.files[0].path)
    assert weights.chat is not None
    assert hashlib.sha256(template.encode()).hexdigest() == weights.chat.template_sha256
    assert weights.chat.system in template


def no_network(*args: Any, **kwargs: Any) -> None:
    raise AssertionError(f"the network was asked for: {args}")


def test_the_encoder_gives_unit_vectors_without_a_network(
    encoder: EmbeddedEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    vectors = encoder.encode(
        ["How many dogs are there?", "Count the dogs.", "The weather in Oslo", "", "\ud800"]
    )
    assert (vectors.shape, vectors.dtype) == ((5, 384), np.dtype(np.float32))
    assert np.allclose((vectors.astype(np.float64) ** 2).sum(axis=1), 1.0, atol=1e-6)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


def test_a_vector_depends_on_its_text_alone_and_is_made_once(encoder: EmbeddedEncoder) -> None:
    texts = ["a", "a much longer text about dogs and their owners " * 3, "a"]
    together = encoder.encode(texts)
    calls: list[list[str]] = []
    model = encoder._loaded()
    original = model.encode
    model.encode = lambda batch, **kwargs: calls.append(batch) or original(batch, **kwargs)
    try:
        again = encoder.encode(list(reversed(texts)))
        fresh = EmbeddedEncoder()
        fresh._model = model
        alone = [fresh.encode([text])[0] for text in texts]
    finally:
        del model.encode
    assert (again == together[::-1]).all()
    assert (np.stack(alone) == together).all()
    assert calls == [[texts[0]], [texts[1]]]


def test_a_vector_does_not_depend_on_the_programs_threads(encoder: EmbeddedEncoder) -> None:
    text = "Which stores have had at least eight different books in their shipped orders? " * 8
    before = torch.get_num_threads()
    vectors = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            fresh = EmbeddedEncoder()
            fresh._model = encoder._loaded()
            vectors.append(fresh.encode([text])[0])
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert (vectors[0] == vectors[1]).all()
    assert (vectors[0] == vectors[2]).all()


def test_what_is_remembered_is_bounded(encoder: EmbeddedEncoder) -> None:
    fresh = EmbeddedEncoder()
    fresh._model, fresh._remembered = encoder._loaded(), 2
    vectors = fresh.encode(["a", "b", "c", "a"])
    assert (vectors[0] == vectors[3]).all()
    assert list(fresh._vectors) == ["c", "a"]


def test_no_texts_are_no_vectors() -> None:
    assert get_encoder("embedded:all-minilm-l6-v2").encode([]).shape == (0, 384)
