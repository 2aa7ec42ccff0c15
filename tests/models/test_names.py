"""Models and encoders by name: what there is, what is said of what there is not, what is loaded for it."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from merit_sql.domain.errors import MeritError, ModelError
from merit_sql.models.chat import get_chat_model, identity
from merit_sql.models.embedded import EmbeddedChatModel
from merit_sql.models.encoder import get_encoder
from merit_sql.models.registry import QWEN_CODER_1_5B


@pytest.mark.parametrize(
    "name",
    ["", "embedded", "embedded:", "embedded:gpt", "embedded:all-minilm-l6-v2", "gpt-4", "hal:9000", ":x"],
)
def test_an_unknown_model_is_answered_with_those_that_exist(name: str) -> None:
    with pytest.raises(ModelError) as caught:
        get_chat_model(name)
    for known in (
        "embedded:qwen2.5-coder-1.5b",
        "embedded:qwen2.5-coder-0.5b",
        "openai:MODEL@BASE_URL",
        "vllm:MODEL",
        "replay:FILE",
    ):
        assert known in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "openai:m",
        "openai:m@localhost:8000",
        "openai:@http://host/v1",
        "openai:m\n@http://host/v1",
        "openai:m@http://host/ v1",
    ],
)
def test_a_served_model_needs_a_name_and_a_url(name: str) -> None:
    with pytest.raises(ModelError, match=r"openai:MODEL@BASE_URL"):
        get_chat_model(name)


def test_a_record_whose_name_no_file_can_have_is_said_to_be_missing() -> None:
    with pytest.raises(MeritError, match="cannot be read"):
        get_chat_model("replay:a\0b")


def test_a_mistyped_name_does_not_repeat_a_password() -> None:
    with pytest.raises(ModelError) as caught:
        get_chat_model("opnai:m@http://me:hunter2@host/v1")
    assert "hunter2" not in str(caught.value)


def test_a_model_name_may_hold_slashes_colons_and_ats() -> None:
    known = identity(get_chat_model("openai:org/model:7b@main@http://localhost:1/v1"))
    assert (known.model, known.base_url) == ("org/model:7b@main", "http://localhost:1/v1")


def test_an_embedded_identity_names_weights_runtime_and_template_without_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MERIT_CACHE", str(tmp_path))
    known = identity(get_chat_model("embedded:qwen2.5-coder-1.5b"))
    assert known.model == "qwen2.5-coder-1.5b"
    assert known.revision == "sha256:cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
    assert known.quantisation == "Q4_K_M"
    assert known.system == "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
    assert known.context is not None
    assert known.context >= 4096 + 512
    assert (known.runtime or "").startswith("xllamacpp ")
    assert list(tmp_path.iterdir()) == []


def test_settings_that_change_replies_are_in_the_identity_and_threads_are_not() -> None:
    plain = EmbeddedChatModel(weights=QWEN_CODER_1_5B)
    assert EmbeddedChatModel(weights=QWEN_CODER_1_5B, threads=1).identity == plain.identity
    assert EmbeddedChatModel(weights=QWEN_CODER_1_5B, context=5120).identity != plain.identity


def test_vllm_without_its_extra_says_how_to_get_it() -> None:
    if importlib.util.find_spec("vllm"):
        pytest.skip("vLLM is installed here")
    model = get_chat_model("vllm:some/model", revision="abc")
    assert (identity(model).model, identity(model).revision) == ("some/model", "abc")
    with pytest.raises(ModelError, match=r"pip install 'merit-sql\[vllm\]'"):
        model.invoke("q")


@pytest.mark.parametrize("name", ["", "bge", "embedded:bge", "paper:minilm", "owner/name", "embedded:"])
def test_an_unknown_encoder_is_answered_with_those_that_exist(name: str) -> None:
    with pytest.raises(ModelError, match=r"embedded:all-minilm-l6-v2, paper:bge-large-en-v1\.5, or OWNER"):
        get_encoder(name)


def test_encoders_know_their_identity_before_they_are_loaded() -> None:
    small, paper = get_encoder("embedded:all-minilm-l6-v2"), get_encoder("paper:bge-large-en-v1.5")
    assert (small.id, small.dimension) == ("all-minilm-l6-v2", 384)
    assert small.revision == "sha256:53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert (paper.id, paper.revision, paper.dimension) == (
        "BAAI/bge-large-en-v1.5",
        "d4aa6901d3a41ba39fb536a557fa166f842b0e09",
        1024,
    )
    assert get_encoder("owner/name@v1").revision == "v1"


HEAVY = ["torch", "transformers", "sentence_transformers", "xllamacpp", "openai", "langchain_openai", "vllm"]

LIGHT = f"""
import sys
import merit_sql.models.chat, merit_sql.models.record, merit_sql.models.scripted, merit_sql.models.hashing
import merit_sql.models.encoder, merit_sql.models.registry, merit_sql.app.model
from merit_sql.models.chat import get_chat_model
from merit_sql.models.encoder import get_encoder
get_chat_model("embedded:qwen2.5-coder-0.5b")
get_encoder("embedded:all-minilm-l6-v2")
print([name for name in {HEAVY!r} if name in sys.modules])
"""


def test_naming_a_model_loads_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
