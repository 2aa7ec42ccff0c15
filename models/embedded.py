"""A language model in this process: llama.cpp through `xllamacpp`, on the CPU, without a network."""

import os
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from merit_sql.domain.errors import ModelError
from merit_sql.models.decoding import Decoding
from merit_sql.models.download import fetch
from merit_sql.models.identity import ModelIdentity
from merit_sql.models.messages import encodable, rendered, result
from merit_sql.models.progress import ConsoleProgress
from merit_sql.models.registry import Weights

CONTEXT = 8192
"""Tokens of prompt and reply together that one request may have.

Prompts are held to 4,096 *estimated* tokens and replies to 512; dense text has up to half as many tokens
again as the estimate says.
"""

SAMPLING: Mapping[str, float] = {"top_k": 40, "min_p": 0.05, "repeat_penalty": 1.0}
"""What a request says beyond its `Decoding`; it matters only above temperature 0."""

_PROMPT_CACHE_MIB = 1024
_OPTIONS = frozenset({"temperature", "top_p", "max_tokens", "seed"})


class EmbeddedChatModel(BaseChatModel):
    """Answers with weights of the registry, which are fetched at the first call where they are not here.

    Honours the call options temperature, top_p, max_tokens, seed and stop; what is not given is as in
    `Decoding`, and the seed is 0. `context` is in tokens for one request, `parallel` the number of requests
    served at once, `threads` by default the number of cores. Messages are sent as they are: a single user
    message gets the system line that the weights' chat template adds (see `identity`).

    The prefix that a prompt shares with an earlier one is not computed again. That makes long prompts an
    order of magnitude cheaper, and greedy replies depend now and then on what was asked before: record them.
    Response metadata hold llama.cpp's `timings` (``cache_n``: prompt tokens taken from the cache;
    ``prompt_n`` and ``predicted_n`` with their milliseconds). Raises `ModelError` for a prompt that does
    not fit.
    """

    weights: Weights
    context: int = CONTEXT
    parallel: int = 1
    threads: int | None = None

    @property
    def identity(self) -> ModelIdentity:
        """Which weights answer, and what else decides their replies; nothing is loaded for it."""
        chat = self.weights.chat
        return ModelIdentity(
            kind="embedded",
            model=self.weights.name,
            revision=self.weights.revision,
            quantisation=self.weights.quantisation,
            runtime=f"xllamacpp {version('xllamacpp')}",
            context=self.context,
            chat_template=f"sha256:{chat.template_sha256}" if chat else None,
            system=chat.system if chat else None,
            sampling=", ".join(f"{name}={value:g}" for name, value in SAMPLING.items()),
        )

    @property
    def _llm_type(self) -> str:
        return "embedded"

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
        request = _request(messages, stop, kwargs)
        return _read(self.server().handle_chat_completions(request), self.weights.name)

    def server(self) -> Any:  # noqa: ANN401 - xllamacpp has no types
        """The running `xllamacpp.Server`, one for the same weights and settings in a process."""
        threads = self.threads or len(os.sched_getaffinity(0))
        settings = _Settings(
            weights=self.weights, context=self.context, parallel=self.parallel, threads=threads
        )
        with _loading:
            if settings not in _servers:
                with ConsoleProgress() as progress:
                    folder = fetch(self.weights, progress=progress)
                _servers[settings] = _load(folder / self.weights.files[0].path, settings)
            return _servers[settings]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    weights: Weights
    context: int
    parallel: int
    threads: int


_servers: dict[_Settings, Any] = {}
_loading = threading.Lock()


def _load(path: Path, settings: _Settings) -> Any:  # noqa: ANN401 - xllamacpp has no types
    try:
        import xllamacpp
    except ImportError as error:
        raise ModelError(f"embedded models need xllamacpp, which cannot be imported here: {error}") from error
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = settings.context * settings.parallel
    params.n_parallel = settings.parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.verbosity = 0
    # The server also listens on the loopback interface; a key that nobody knows keeps others out.
    params.port = 0
    params.api_keys = [secrets.token_hex(16)]
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise ModelError(f"{path} could not be loaded: {error}") from error


def _request(
    messages: list[BaseMessage], stop: list[str] | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    unknown = sorted(set(options) - _OPTIONS)
    if unknown:
        raise ModelError(
            f"an embedded model does not know the option {', '.join(unknown)}; it knows stop, "
            f"{', '.join(sorted(_OPTIONS))}"
        )
    plain = Decoding()
    given = {name: value for name, value in options.items() if value is not None}
    return {
        "messages": [{**message, "content": encodable(message["content"])} for message in rendered(messages)],
        "temperature": plain.temperature,
        "top_p": plain.top_p,
        "max_tokens": plain.max_tokens,
        "seed": 0,
        **SAMPLING,
        "cache_prompt": True,
        **given,
        **({"stop": stop} if stop else {}),
    }


def _read(answer: Mapping[str, Any], name: str) -> ChatResult:
    error = answer.get("error")
    if error:
        raise ModelError(f"{name} did not answer: {error.get('message', error)}")
    choice, usage, timings = answer["choices"][0], answer["usage"], answer["timings"]
    return result(
        choice["message"]["content"],
        prompt_tokens=usage["prompt_tokens"],
        output_tokens=usage["completion_tokens"],
        cached_tokens=timings["cache_n"],
        finish_reason=choice["finish_reason"],
        metadata={"model_name": name, "timings": dict(timings)},
    )
