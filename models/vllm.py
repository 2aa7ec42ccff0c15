"""A vLLM engine in this process, on a GPU machine, behind LangChain's own wrapper."""

import threading
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from pydantic import PrivateAttr

from merit_sql.domain.errors import ModelError
from merit_sql.models.decoding import Decoding
from merit_sql.models.identity import UNPINNED, ModelIdentity
from merit_sql.models.messages import encodable, rendered, result


class VLLMChatModel(BaseChatModel):
    """Chat over ``langchain_community.llms.VLLM``: the engine applies its tokenizer's chat template.

    `model` is a hub name or a folder. `revision` pins the weights on the hub and is passed on, as are
    `engine_options`, to ``vllm.LLM``. The engine starts at the first call; one request runs at a time.
    Raises `ModelError` where the extra ``vllm`` is not installed.
    """

    model: str
    revision: str | None = None
    engine_options: Mapping[str, Any] = {}

    _engine: Any = PrivateAttr(default=None)
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    @property
    def identity(self) -> ModelIdentity:
        """The model's name and, where given, its revision; nothing is loaded for it."""
        try:
            runtime: str | None = f"vllm {version('vllm')}"
        except PackageNotFoundError:
            runtime = None
        return ModelIdentity(
            kind="vllm",
            model=self.model,
            revision=self.revision or UNPINNED,
            quantisation=self.engine_options.get("quantization"),
            runtime=runtime,
            context=self.engine_options.get("max_model_len"),
        )

    @property
    def _llm_type(self) -> str:
        return "vllm-in-process"

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
        plain = Decoding()
        settings = {
            "temperature": plain.temperature,
            "top_p": plain.top_p,
            "max_tokens": plain.max_tokens,
            "stop": stop,
            **kwargs,
        }
        chat = [{**message, "content": encodable(message["content"])} for message in rendered(messages)]
        with self._lock:
            engine, sampling = self._start()
            try:
                output = engine.chat(chat, sampling(**settings), use_tqdm=False)[0]
            except ValueError as error:
                raise ModelError(f"{self.model} did not answer: {error}") from error
        choice = output.outputs[0]
        return result(
            choice.text,
            prompt_tokens=len(output.prompt_token_ids),
            output_tokens=len(choice.token_ids),
            finish_reason=choice.finish_reason,
            metadata={"model_name": self.model},
        )

    def _start(self) -> tuple[Any, Any]:
        """The running ``vllm.LLM``, and the class of its sampling settings."""
        try:
            wrapper = import_module("langchain_community.llms").VLLM
            sampling = import_module("vllm").SamplingParams
        except ImportError as error:
            raise ModelError(
                f"vllm:{self.model} runs vLLM in this process, which needs the extra: "
                f"pip install 'merit-sql[vllm]' ({error}); a vLLM server is asked as openai:MODEL@BASE_URL"
            ) from error
        if self._engine is None:
            revision = {"revision": self.revision} if self.revision else {}
            self._engine = wrapper(model=self.model, vllm_kwargs={**revision, **self.engine_options}).client
        return self._engine, sampling
