"""Decodings, identities, the scripted model and the hashing encoder."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from merit_sql.domain.errors import DataError, ModelError
from merit_sql.models.chat import identity
from merit_sql.models.decoding import Decoding
from merit_sql.models.hashing import HashingEncoder
from merit_sql.models.identity import ModelIdentity
from merit_sql.models.messages import encodable
from merit_sql.models.scripted import ScriptedChatModel


def test_a_greedy_call_says_only_what_every_chat_model_knows() -> None:
    assert Decoding().call_options() == {"temperature": 0.0, "max_tokens": 512}


def test_a_draw_says_its_seed_and_what_differs_from_the_defaults() -> None:
    drawn = Decoding(temperature=0.8, top_p=0.9, max_tokens=64, stop=("\n",), seed=2, draw=2)
    assert drawn.call_options() == {
        "temperature": 0.8,
        "max_tokens": 64,
        "top_p": 0.9,
        "seed": 2,
        "stop": ["\n"],
    }


def test_an_identity_is_plain_data_and_back() -> None:
    one = ModelIdentity(kind="embedded", model="m", revision="r", context=8192)
    assert ModelIdentity.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert one.digest() != ModelIdentity(kind="embedded", model="m", revision="r", context=4096).digest()


@pytest.mark.parametrize(
    "data", [{}, {"kind": "k", "model": "m"}, {"kind": "k", "model": "m", "revision": "r", "more": 1}]
)
def test_other_data_is_no_identity(data: dict[str, object]) -> None:
    with pytest.raises(DataError):
        ModelIdentity.from_dict(data)


def test_a_foreign_chat_model_is_known_by_its_class_and_pinned_by_nothing() -> None:
    assert identity(FakeListChatModel(responses=["a"])) == ModelIdentity(
        kind="FakeListChatModel", model="FakeListChatModel", revision="unpinned"
    )


def test_a_script_is_followed_in_order_and_says_when_it_runs_out() -> None:
    model = ScriptedChatModel(
        replies=["one", AIMessage("two", response_metadata={"finish_reason": "length"})]
    )
    assert model.invoke("first", temperature=0.0, stop=["x"]).text == "one"
    second = model.invoke([SystemMessage("be brief"), HumanMessage("second")])
    assert (second.text, second.response_metadata["finish_reason"]) == ("two", "length")
    with pytest.raises(ModelError, match="has 2 replies and was asked a further time"):
        model.invoke("third")
    assert model.prompts == ["first", "be brief\n\nsecond", "third"]
    assert model.options == [{"temperature": 0.0, "stop": ["x"]}, {}, {}]


def test_a_script_can_be_a_function_and_leave_its_usage_unknown() -> None:
    silent = ScriptedChatModel(replies=lambda prompt: prompt[::-1], reports_usage=False)
    reply = silent.invoke("abc")
    assert (reply.text, reply.usage_metadata) == ("cba", None)


def test_scripted_usage_is_three_and_a_half_bytes_a_token_rounded_up() -> None:
    usage = ScriptedChatModel(replies=["éé"]).invoke("12345678").usage_metadata
    # 8 bytes / 3.5 = 2.29, 4 bytes / 3.5 = 1.14
    assert usage == {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


def test_threads_share_a_script_without_losing_a_reply() -> None:
    model = ScriptedChatModel(replies=[str(number) for number in range(40)])
    with ThreadPoolExecutor(8) as pool:
        replies = [message.text for message in pool.map(model.invoke, ["q"] * 40)]
    assert sorted(replies, key=int) == [str(number) for number in range(40)]


def test_lone_surrogates_are_replaced_and_whole_characters_kept() -> None:
    assert encodable("a\ud800b é 𝄞") == "a\ufffdb é 𝄞"


words = st.text(alphabet="abc_1 ,.éÄ", max_size=20)


@given(st.lists(words, max_size=5), st.integers(1, 9))
def test_hashed_vectors_are_unit_float32_and_depend_on_the_text_alone(
    texts: list[str], dimension: int
) -> None:
    encoder = HashingEncoder(dimension=dimension)
    vectors = encoder.encode(texts)
    assert vectors.shape == (len(texts), dimension)
    assert vectors.dtype == np.float32
    assert np.allclose((vectors.astype(np.float64) ** 2).sum(axis=1), 1.0, atol=1e-6)
    for text, vector in zip(texts, vectors, strict=True):
        assert (encoder.encode([text])[0] == vector).all()


def test_hashing_sees_words_not_their_order_case_or_punctuation() -> None:
    one, other, third = HashingEncoder().encode(["Count the DOGS!", "dogs, the count", "count the cats"])
    assert (one == other).all()
    assert (one != third).any()


def test_a_text_without_words_is_the_first_unit_vector() -> None:
    assert HashingEncoder(dimension=3).encode(["", "?!"]).tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


def test_an_encoder_has_a_dimension() -> None:
    with pytest.raises(ValueError, match="at least one dimension"):
        HashingEncoder(dimension=0)
