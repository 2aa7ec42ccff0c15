"""A chat model that answers from a record, and keeps there what it had to ask for."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, runtime_checkable

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from pydantic import PrivateAttr, SkipValidation, model_validator

from merit_sql.domain.errors import ModelError
from merit_sql.models.identity import ModelIdentity
from merit_sql.models.messages import result
from merit_sql.models.replies import Replies, Reply, reply_key


@runtime_checkable
class WritableReplies(Replies, Protocol):
    """A record that takes further replies, if it is `writable`."""

    @property
    def writable(self) -> bool:
        """Whether `put` may be called."""
        ...

    def put(self, key: str, identity: ModelIdentity, reply: Reply) -> Reply:
        """Keep a reply, and return the one that stands."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """What a model was really asked so far: calls that the record could not answer, and their seconds."""

    calls: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class _Flights:
    """Locks by key, each there only while somebody wants it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    held: dict[str, tuple[threading.Lock, int]] = field(default_factory=dict)

    @contextmanager
    def alone(self, key: str) -> Iterator[None]:
        with self.lock:
            mine, wanted = self.held.get(key, (threading.Lock(), 0))
            self.held[key] = (mine, wanted + 1)
        try:
            with mine:
                yield
        finally:
            with self.lock:
                mine, wanted = self.held.pop(key)
                if wanted > 1:
                    self.held[key] = (mine, wanted - 1)


class RecordedChatModel(BaseChatModel):
    """Looks a reply up in `records`, in their order; asks `inner` on a miss and records before it answers.

    New replies go to the first record, which must be writable where there is an `inner`; replies that another
    record had are copied there, so that it is complete. Without an `inner` a miss is a `ModelError`.
    `identity` is the model whose replies are looked up. A message's response metadata say whether it was
    `recorded` and how many `seconds` it took. Safe for threads: one key is asked for once at a time.
    """

    inner: BaseChatModel | None = None
    records: Annotated[Sequence[Replies], SkipValidation]
    identity: ModelIdentity

    _meter: Meter = PrivateAttr(default_factory=Meter)
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _flights: _Flights = PrivateAttr(default_factory=_Flights)

    @model_validator(mode="after")
    def _needs_a_place(self) -> "RecordedChatModel":
        if not self.records:
            raise ValueError("a recorded model needs a record")
        if self.inner is not None and self._own() is None:
            raise ValueError("the first record cannot take the replies of the model that is asked")
        return self

    def meter(self) -> Meter:
        """What `inner` was asked up to now."""
        with self._lock:
            return self._meter

    @property
    def _llm_type(self) -> str:
        return "recorded"

    def _own(self) -> WritableReplies | None:
        first = self.records[0]
        return first if isinstance(first, WritableReplies) and first.writable else None

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - passed on to whatever model is asked
    ) -> ChatResult:
        begun = time.perf_counter()
        key = reply_key(messages, self.identity, kwargs, stop)
        with self._flights.alone(key):
            reply = self._look_up(key)
            if reply is not None:
                return _answer(reply, recorded=True, seconds=time.perf_counter() - begun, metadata={})
            message = self._ask(messages, stop, kwargs)
            own = self._own()
            reply = _kept(message)
            if own is not None:
                reply = own.put(key, self.identity, reply)
        seconds = time.perf_counter() - begun
        with self._lock:
            self._meter = Meter(calls=self._meter.calls + 1, seconds=self._meter.seconds + seconds)
        return _answer(reply, recorded=False, seconds=seconds, metadata=message.response_metadata)

    def _look_up(self, key: str) -> Reply | None:
        for place, record in enumerate(self.records):
            reply = record.get(key)
            if reply is not None:
                own = self._own()
                return own.put(key, self.identity, reply) if place > 0 and own is not None else reply
        return None

    def _ask(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        options: dict[str, Any],
    ) -> AIMessage:
        if self.inner is None:
            places = ", ".join(record.name for record in self.records)
            raise ModelError(
                f"no reply to this prompt is recorded in {places} for {self.identity.describe()}, and no "
                "model was asked: use the model itself to record it, or the recording's prompts and settings"
            )
        # This call is the one that is traced and streamed; the model behind it must not be seen twice.
        return self.inner.invoke(messages, config={"callbacks": []}, stop=stop, **options)


def _kept(message: AIMessage) -> Reply:
    usage = message.usage_metadata
    reason = message.response_metadata.get("finish_reason")
    return Reply(
        text=message.text,
        prompt_tokens=usage["input_tokens"] if usage else None,
        output_tokens=usage["output_tokens"] if usage else None,
        finish_reason=reason if isinstance(reason, str) else None,
    )


def _answer(reply: Reply, *, recorded: bool, seconds: float, metadata: dict[str, Any]) -> ChatResult:
    return result(
        reply.text,
        prompt_tokens=reply.prompt_tokens,
        output_tokens=reply.output_tokens,
        finish_reason=reply.finish_reason,
        metadata={
            **metadata,
            "finish_reason": reply.finish_reason,
            "recorded": recorded,
            "seconds": seconds,
        },
    )
