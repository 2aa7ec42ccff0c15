"""A model behind a real local HTTP server that refuses, fails, hangs, redirects and talks nonsense."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from merit_sql.domain.errors import ModelError
from merit_sql.models.chat import get_chat_model, identity
from merit_sql.models.credentials import checked_base_url, configured_here, header_guard, key_for
from merit_sql.models.decoding import Decoding
from merit_sql.models.server import ServerChatModel, _retry_after

SECRET = "sk-merit-secret"  # noqa: S105 - stands for a key that must not travel


@dataclass
class Answer:
    """One response of the server; a `pause` comes before it."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0


def completion(text: str | None = "SELECT 1", **changes: Any) -> Answer:
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "served",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
        **changes,
    }
    return Answer(body=json.dumps({k: v for k, v in body.items() if v is not ...}).encode())


def failure(status: int, message: str = "no", **headers: str) -> Answer:
    body = json.dumps({"error": {"message": message, "type": "t"}}).encode()
    return Answer(status=status, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


class Scripted(ThreadingHTTPServer):
    """Answers in order, the last one for ever; keeps what it was sent."""

    answers: list[Answer]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = [completion()]
        self.seen: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Scripted

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        place = min(len(self.server.seen), len(self.server.answers) - 1)
        self.server.seen.append((self.path, headers, body))
        answer = self.server.answers[place]
        if answer.pause:
            time.sleep(answer.pause)
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        try:
            self.wfile.write(answer.body)
        except BrokenPipeError:
            self.close_connection = True

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *args: Any) -> None:
        pass


def serving() -> Iterator[Scripted]:
    started = Scripted()
    thread = threading.Thread(target=started.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield started
    started.shutdown()
    started.server_close()
    thread.join()


server = pytest.fixture(serving, name="server")
other = pytest.fixture(serving, name="other")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_ORG_ID", "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)


def model(url: str, **options: Any) -> ServerChatModel:
    made = get_chat_model(f"openai:served@{url}", **{"first_delay": 0.01, "timeout": 5.0, **options})
    assert isinstance(made, ServerChatModel)
    return made


def test_a_reply_comes_with_its_usage_and_its_reason(server: Scripted) -> None:
    reply = model(server.url).invoke("q", **Decoding().call_options())
    assert reply.text == "SELECT 1"
    assert reply.usage_metadata == {"input_tokens": 11, "output_tokens": 3, "total_tokens": 14}
    assert reply.response_metadata["finish_reason"] == "stop"


def test_the_request_says_what_was_decided_and_one_user_message(server: Scripted) -> None:
    draw = Decoding(temperature=0.8, top_p=0.9, max_tokens=64, seed=2, draw=2, stop=(";",))
    model(server.url).invoke([HumanMessage("q \ud800")], **draw.call_options())
    path, _, body = server.seen[0]
    assert path == "/v1/chat/completions"
    assert body.pop("stream", False) is False
    assert body == {
        "model": "served",
        "messages": [{"role": "user", "content": "q \ufffd"}],
        "temperature": 0.8,
        "top_p": 0.9,
        "max_tokens": 64,
        "seed": 2,
        "stop": [";"],
    }


@pytest.mark.parametrize(
    "usage",
    [
        ...,
        None,
        {},
        {"prompt_tokens": 11, "total_tokens": 11},
        {"prompt_tokens": None, "completion_tokens": None},
    ],
    ids=["absent", "null", "empty", "half", "nulls"],
)
def test_unknown_usage_is_none_and_not_zero(server: Scripted, usage: object) -> None:
    server.answers = [completion(usage=usage)]
    assert model(server.url).invoke("q").usage_metadata is None


def test_no_text_is_an_empty_reply(server: Scripted) -> None:
    server.answers = [completion(None)]
    assert model(server.url).invoke("q").text == ""


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_fault_that_passes_costs_only_time(server: Scripted, status: int) -> None:
    server.answers = [failure(status), failure(status), completion()]
    assert model(server.url).invoke("q").text == "SELECT 1"
    assert len(server.seen) == 3


def test_a_fault_that_stays_ends_with_a_clear_error(server: Scripted) -> None:
    server.answers = [failure(503, "overloaded")]
    with pytest.raises(
        ModelError, match=r"served at http://127.* in 3 tries: status 503, overloaded.*goes on"
    ):
        model(server.url, attempts=3).invoke("q")
    assert len(server.seen) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_the_server_will_not_do_is_not_asked_again(server: Scripted, status: int) -> None:
    server.answers = [failure(status, "not here")]
    with pytest.raises(ModelError, match=f"did not answer: status {status}, not here"):
        model(server.url).invoke("q")
    assert len(server.seen) == 1


def test_a_server_that_hangs_is_asked_again_and_given_up(server: Scripted) -> None:
    server.answers = [Answer(pause=1.0)]
    begun = time.monotonic()
    with pytest.raises(ModelError, match="in 2 tries: it took too long"):
        model(server.url, attempts=2, timeout=0.2).invoke("q")
    assert time.monotonic() - begun < 10


def test_a_refused_connection_is_tried_again_until_somebody_listens() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
    with pytest.raises(ModelError, match=r"in 2 tries: no connection \(.*refused"):
        model(f"http://127.0.0.1:{port}/v1", attempts=2).invoke("q")


def test_an_unknown_host_is_no_wrong_answer() -> None:
    with pytest.raises(ModelError, match="no connection"):
        model("http://merit-sql.invalid/v1", attempts=1).invoke("q")


def test_retry_after_is_honoured_and_bounded(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("merit_sql.models.server.time.sleep", slept.append)
    server.answers = [
        failure(429, Retry_After="2"),
        failure(429, Retry_After="3600"),
        failure(429, Retry_After="soon"),
        failure(500),
        completion(),
    ]
    model(server.url, first_delay=1.0, longest_delay=6.0).invoke("q")
    # 2 as asked; 3600 cut to 6; then our own 1·2² and 1·2³ cut to 6
    assert slept == [2.0, 6.0, 4.0, 6.0]


def test_retry_after_may_be_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    seconds = _retry_after(later)
    assert seconds is not None
    assert 50 < seconds <= 60
    assert [_retry_after(text) for text in (None, "soon", "-5")] == [None, None, 0.0]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=b'{"choices": [{"mess'),
        Answer(body=b"<html>login</html>", headers={"Content-Type": "text/html"}),
        Answer(body=b""),
        Answer(body=b"[]"),
        Answer(body=b'"text"'),
        completion(choices=[]),
        completion(choices=None),
        completion(choices=...),
        completion(choices=[{"index": 0}]),
        Answer(body=b'{"error": {"message": "model is loading"}}'),
    ],
    ids=[
        "torn JSON", "HTML", "empty", "list", "string", "no choices", "null choices", "choices absent",
        "no message", "error with status 200",
    ],
)  # fmt: skip
def test_nonsense_is_an_error_and_never_an_answer(server: Scripted, answer: Answer) -> None:
    server.answers = [answer]
    with pytest.raises(ModelError, match=r"served at .* did not answer"):
        model(server.url).invoke("q")
    assert len(server.seen) == 1


def test_a_connection_that_breaks_off_is_tried_again(server: Scripted) -> None:
    torn = completion()
    server.answers = [Answer(body=torn.body, headers={"Connection": "close"}), completion()]
    original = Handler.do_POST

    def cut(self: Handler) -> None:
        if not self.server.seen:
            self.server.seen.append(("", {}, {}))
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            original(self)

    Handler.do_POST = cut  # type: ignore[method-assign]
    try:
        assert model(server.url).invoke("q").text == "SELECT 1"
    finally:
        Handler.do_POST = original  # type: ignore[method-assign]
    assert len(server.seen) == 2


def test_the_key_goes_to_no_server_that_it_was_not_configured_for(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv(
        "OPENAI_CUSTOM_HEADERS", "X-Gateway-Key: gateway-secret\nAuthorization: Bearer other-secret"
    )
    model(server.url).invoke("q")
    _, headers, body = server.seen[0]
    assert headers["authorization"] == "Bearer no-key"
    assert "secret" not in json.dumps([headers, body])


def test_the_key_goes_to_the_server_that_the_environment_names(
    server: Scripted, other: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/")
    model(server.url).invoke("q")
    model(other.url).invoke("q")
    assert server.seen[0][1]["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in json.dumps(other.seen)


def test_an_explicit_key_goes_to_its_server_instead(server: Scripted) -> None:
    model(server.url, api_key="sk-mine").invoke("q")
    assert server.seen[0][1]["authorization"] == "Bearer sk-mine"
    assert SECRET not in json.dumps(server.seen)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(server: Scripted, other: Scripted, status: int) -> None:
    server.answers = [Answer(status=status, headers={"Location": f"{other.url}/chat/completions"})]
    with pytest.raises(ModelError, match=f"status {status}, a redirect"):
        model(server.url, api_key="sk-mine").invoke("q")
    assert other.seen == []
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("named", "base_url", "ours"),
    [
        (None, "https://api.openai.com/v1", True),
        (None, "https://api.openai.com/v1/", True),
        (None, "https://API.openai.com:443/v1", True),
        (None, "http://api.openai.com/v1", False),
        (None, "https://api.openai.com.evil.example/v1", False),
        (None, "https://evil.example/api.openai.com/v1", False),
        ("http://localhost:8000/v1", "http://localhost:8000/v1", True),
        ("http://localhost:8000/v1", "http://localhost:8001/v1", False),
        ("http://localhost:8000/v1", "https://api.openai.com/v1", False),
    ],
)
def test_whom_the_key_was_configured_for(
    named: str | None, base_url: str, ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if named:
        monkeypatch.setenv("OPENAI_BASE_URL", named)
    assert configured_here(base_url) is ours
    assert key_for(base_url) == (SECRET if ours else None)


def test_secrets_stand_in_no_message(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.answers = [failure(401, f"Incorrect API key provided: {SECRET}")]
    asked = model(server.url)
    with pytest.raises(ModelError) as caught:
        asked.invoke("q")
    shown: list[Callable[[], str]] = [
        lambda: str(caught.value),
        lambda: repr(asked),
        lambda: str(asked.asdict()),
    ]
    assert [SECRET in show() for show in shown] == [False] * 3
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "base_url",
    ["http://me:pass-word@host/v1", "http://host/v1?key=pass-word", "http://host/v1#pass-word"],
)
def test_a_base_url_that_holds_a_secret_is_refused_without_repeating_it(base_url: str) -> None:
    with pytest.raises(ModelError, match="server host") as caught:
        get_chat_model(f"openai:m@{base_url}")
    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize("base_url", ["http://", "http://host:port/v1", "ftp://host/v1", "http:///v1"])
def test_a_base_url_must_be_one(base_url: str) -> None:
    with pytest.raises(ModelError, match="base URL of a model must be"):
        checked_base_url(base_url)


def test_the_identity_holds_the_server_unless_the_weights_are_known() -> None:
    unpinned, pinned = model("http://host:1/v1/"), model("http://host:1/v1", revision="sha256:ab")
    assert identity(unpinned).to_dict()["revision"] == "served by http://host:1/v1"
    assert identity(pinned).revision == "sha256:ab"
    assert identity(pinned).base_url == "http://host:1/v1"


def test_a_guard_leaves_the_headers_of_the_configured_server(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass
    class Request:
        headers: dict[str, str]

    monkeypatch.setenv("OPENAI_BASE_URL", "http://host/v1")
    request = Request({"X-Gateway-Key": "mine", "Host": "host"})
    header_guard("http://host/v1", "k")(request)
    assert request.headers == {"X-Gateway-Key": "mine", "Host": "host", "Authorization": "Bearer k"}
