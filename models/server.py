"""A model behind any server that speaks OpenAI's chat protocol: vLLM, llama.cpp, a gateway, OpenAI itself."""

import email.utils
import os
import time
import weakref
from datetime import UTC, datetime
from typing import Any

import openai
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr, SecretStr

from merit_sql.domain.errors import ModelError
from merit_sql.models.credentials import (
    OFFICIAL,
    PLACEHOLDER,
    checked_base_url,
    configured_here,
    header_guard,
    key_for,
)
from merit_sql.models.identity import ModelIdentity
from merit_sql.models.messages import encodable, result

_RETRIED = frozenset({408, 429})


class ServerChatModel(BaseChatModel):
    """One model of one server, asked through `ChatOpenAI`.

    The environment's OPENAI_API_KEY is sent only where OPENAI_BASE_URL names this server, or names none and
    this is OpenAI's own; `api_key` is sent to this server whatever the environment says; any other server
    gets a placeholder. Redirects are refused, so that no key follows them.

    Refused connections, timeouts (`timeout` seconds a request), 408, 429 and 5xx are tried `attempts` times
    in all, `first_delay` seconds apart and twice as long each time up to `longest_delay`, which bounds a
    server's Retry-After too. What remains, and any other failure at once, is a `ModelError`. `revision` says
    which weights the server runs; without it a record's replies hold for this base URL alone.
    """

    model: str
    base_url: str
    api_key: SecretStr | None = None
    revision: str | None = None
    attempts: int = 5
    first_delay: float = 1.0
    longest_delay: float = 30.0
    timeout: float = 300.0

    _client: ChatOpenAI = PrivateAttr()
    _key: str | None = PrivateAttr()

    def model_post_init(self, context: object) -> None:
        """Build the client; nothing is sent."""
        self.base_url = checked_base_url(self.base_url)
        self._key = self.api_key.get_secret_value() if self.api_key else key_for(self.base_url)
        http = openai.DefaultHttpxClient(
            follow_redirects=False,
            proxy=os.environ.get("OPENAI_PROXY") or None,
            event_hooks={"request": [header_guard(self.base_url, self._key)]},
        )
        weakref.finalize(self, http.close)
        kind = ChatOpenAI if configured_here(self.base_url) and self.base_url == OFFICIAL else _CompatibleChat
        self._client = kind(
            model=self.model,
            base_url=self.base_url,
            api_key=SecretStr(self._key or PLACEHOLDER),
            http_client=http,
            timeout=self.timeout,
            max_retries=0,
            use_responses_api=False,
            openai_proxy="",  # it refuses a proxy beside a client, and the client has it already
        )

    @property
    def identity(self) -> ModelIdentity:
        """The name and the server, and the weights where `revision` says which they are."""
        return ModelIdentity(
            kind="openai",
            model=self.model,
            revision=self.revision or f"served by {self.base_url}",
            base_url=self.base_url,
        )

    @property
    def _llm_type(self) -> str:
        return "openai-server"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return self.identity.to_dict()

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - the options of a call, as LangChain hands them on
    ) -> ChatResult:
        sent = [message.model_copy(update={"content": encodable(message.text)}) for message in messages]
        for attempt in range(1, self.attempts + 1):
            try:
                # The client is a part of this model: it must not be traced as a second one.
                reply = self._client.invoke(sent, config={"callbacks": []}, stop=stop, **kwargs)
                return _read(reply)
            except openai.APIError as error:
                transient, reason, wait = _diagnose(error)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                # A reply that is no chat completion: not JSON, no choices, an error in place of them.
                transient, reason, wait = False, f"its reply makes no sense ({error})", None
            if not transient or attempt == self.attempts:
                raise self._failure(reason, attempt) from None
            delay = self.first_delay * 2 ** (attempt - 1) if wait is None else wait
            time.sleep(min(delay, self.longest_delay))
        raise ValueError(f"a server is asked at least once, not {self.attempts} times")

    def _failure(self, reason: str, attempts: int) -> ModelError:
        text = reason.replace(self._key, "…") if self._key else reason
        tries = "" if attempts == 1 else f" in {attempts} tries"
        return ModelError(
            f"{self.model} at {self.base_url} did not answer{tries}: {text}. Nothing was recorded for this "
            "call: once the server answers, the same command goes on from here"
        )


class _CompatibleChat(ChatOpenAI):
    """Names the limit of a reply as servers other than OpenAI's know it; some ignore the newer name."""

    def _get_request_payload(
        self,
        input_: LanguageModelInput,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,  # noqa: ANN401 - as in the method that it extends
    ) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        if "max_completion_tokens" in payload:
            payload["max_tokens"] = payload.pop("max_completion_tokens")
        return payload


def _read(message: AIMessage) -> ChatResult:
    # LangChain makes 0 of a count that the server left out; the raw usage tells the two apart.
    usage = message.response_metadata.get("token_usage") or {}
    prompt, output = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return result(
        message.text,
        prompt_tokens=prompt if isinstance(prompt, int) else None,
        output_tokens=output if isinstance(output, int) else None,
        finish_reason=message.response_metadata.get("finish_reason"),
        metadata={
            name: message.response_metadata[name]
            for name in ("model_name", "system_fingerprint")
            if message.response_metadata.get(name)
        },
    )


def _diagnose(error: openai.APIError) -> tuple[bool, str, float | None]:
    """Whether it may pass, what it was, and how many seconds the server asks to wait."""
    if isinstance(error, openai.APITimeoutError):
        return True, "it took too long", None
    if isinstance(error, openai.APIConnectionError):
        return True, f"no connection ({_root(error)})", None
    if not isinstance(error, openai.APIStatusError):
        return False, f"its reply makes no sense ({error.message})", None
    status = error.status_code
    if status in range(300, 400):
        return False, f"status {status}, a redirect; name the URL that it leads to, if you trust it", None
    wait = _retry_after(error.response.headers.get("retry-after"))
    return status in _RETRIED or status >= 500, f"status {status}, {_said(error)}", wait


def _root(error: BaseException) -> BaseException:
    """The failure that the client's own exceptions are wrapped around."""
    while isinstance(error, openai.APIError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _said(error: openai.APIStatusError) -> str:
    body = error.body
    message = body.get("message") if isinstance(body, dict) else None
    return str(message or error.message)[:300]


def _retry_after(header: str | None) -> float | None:
    """Seconds from a Retry-After header, given as a number or as a date; None where it says nothing."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        moment = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
