"""A model client that records its calls, continues interrupted answers, and reuses whole ones."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from weft.core.calls import CallId, ModelAnswered, ModelCalled, ModelStreamed, ModelTold
from weft.core.errors import Failure, ModelError, convert
from weft.core.ids import NodeId
from weft.core.ports import (
    Capabilities,
    Delta,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Prefilled,
    Sampling,
    Startable,
    TextDelta,
    Tokenizing,
    Warmable,
)
from weft.core.values import AUTOREGRESSIVE, Completion, Message, Usage
from weft.durability.calls.digest import chat_question
from weft.durability.calls.history import Piece, RecordedCall, fitted
from weft.durability.calls.log import CallLog
from weft.engine.scheduler.effects import CallSite, current_call_site

_MAX_DROPPED: Final = 8
_REPLACEMENT: Final = "\ufffd"
"""Replaces bytes that are no text; a model that reads it reads something else."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """`pieces` of an answer, of `received` tokens, are reused; `request` asks for the rest.

    `whole`: each piece has its token ids.
    """

    pieces: tuple[Piece, ...]
    request: ModelRequest
    received: int
    whole: bool

    @property
    def text(self) -> str:
        """The reused text."""
        return "".join(delta.text for delta in _deltas(self.pieces))

    def completed(self, rest: Completion) -> Completion:
        """The whole answer, from `rest`, the answer to `request`.

        It has token ids and log probabilities where every part has them. Tokens that were read
        again count once, as in an undisturbed answer; the requests are two.
        """
        deltas = _deltas(self.pieces)
        again = Usage(-self.received, self.received, requests=1)
        made = replace(rest, text=self.text + rest.text, usage=rest.usage + again)
        if not self.whole or len(rest.token_ids) == 0 < len(rest.text):
            return replace(made, token_ids=(), logprobs=(), top_logprobs=())
        ids = tuple(each for delta in deltas for each in delta.token_ids)
        logprobs = tuple(each for delta in deltas for each in delta.logprobs)
        largest = tuple(each for delta in deltas for each in delta.top_logprobs)
        return replace(
            made,
            token_ids=ids + rest.token_ids,
            logprobs=logprobs + rest.logprobs,
            top_logprobs=largest + rest.top_logprobs,
        )


async def find_continuation(
    client: ModelClient, request: ModelRequest, known: RecordedCall | None
) -> Continuation | None:
    """How `client` continues the answer to `request` that `known` contains; None: it cannot.

    It continues by token ids where the client takes and returns them, so that greedy decoding
    writes the tokens of an undisturbed answer. Otherwise it continues a conversation that ends with
    the unfinished answer, whose last word may be tokenized differently. Not continued is an answer
    that is sampled with a seed, constrained by a schema or a grammar, calls tools, or reasons.

    Raises: `ModelError`.
    """
    if known is None or known.ended is not None or not _may_continue(request, known.pieces):
        return None
    able = await client.capabilities()
    if able.prompt_token_ids and _is_whole(known.pieces):
        prompt = await _prompt(client, request, known.pieces)
        if prompt:
            return await _by_ids(client, prompt, request, known.pieces)
    return await _by_messages(client, able, request, known.pieces)


def _may_continue(request: ModelRequest, pieces: tuple[Piece, ...]) -> bool:
    sampling = request.sampling
    return (
        (sampling.temperature == 0 or sampling.seed is None)
        and not (sampling.presence_penalty or sampling.frequency_penalty)
        and request.decode == AUTOREGRESSIVE
        and not (request.schema or request.grammar or request.tools)
        and not (request.attention or request.placement)
        and all(isinstance(piece, TextDelta | Prefilled) for _, piece in pieces)
        and any(delta.text for delta in _deltas(pieces))
    )


async def _prompt(
    client: ModelClient, request: ModelRequest, pieces: tuple[Piece, ...]
) -> tuple[int, ...]:
    """The token ids of the prompt; empty where they are unknown."""
    recorded = [piece.prompt_token_ids for _, piece in pieces if isinstance(piece, Prefilled)]
    prompt = request.prompt_token_ids or next(iter(recorded), ())
    if prompt or not isinstance(client, Tokenizing):
        return prompt
    return await client.encode_chat(request.messages, chat_template_kwargs=request.template_kwargs)


async def _by_ids(
    client: ModelClient, prompt: tuple[int, ...], request: ModelRequest, pieces: tuple[Piece, ...]
) -> Continuation | None:
    if isinstance(client, Tokenizing):
        pieces = await _readable(client, pieces)
    ids = _ids(pieces)
    sampling = _fewer(request.sampling, len(ids))
    if not ids or sampling is None:
        return None
    rest = replace(request, messages=(), prompt_token_ids=prompt + ids, sampling=sampling)
    return Continuation(pieces, rest, len(ids), True)


async def _by_messages(
    client: ModelClient, able: Capabilities, request: ModelRequest, pieces: tuple[Piece, ...]
) -> Continuation | None:
    text = "".join(delta.text for delta in _deltas(pieces))
    if not able.continuation or not request.messages or _REPLACEMENT in text:
        return None
    whole = _is_whole(pieces)
    received = len(_ids(pieces))
    if not whole:
        if isinstance(client, Tokenizing):
            received = len(await client.encode(text))
        elif request.sampling.max_tokens is not None:
            return None  # the number of tokens left is unknown
    sampling = _fewer(request.sampling, received)
    if sampling is None:
        return None
    messages, answer = request.messages, Message("assistant", text)
    if request.continues:
        answer = replace(messages[-1], content=messages[-1].content + text)
        messages = messages[:-1]
    rest = replace(request, messages=(*messages, answer), sampling=sampling)
    return Continuation(pieces, rest, received, whole)


async def _readable(client: Tokenizing, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """`pieces` without the last ones whose tokens exceed their text, by half a character."""
    for dropped in range(min(_MAX_DROPPED, len(pieces))):
        readable = pieces[: len(pieces) - dropped]
        if await client.decode(_ids(readable)) == "".join(d.text for d in _deltas(readable)):
            return readable
    return ()


def _fewer(sampling: Sampling, tokens: int) -> Sampling | None:
    """`sampling` for an answer that has `tokens` already; None: it is complete, or it is unknown
    how much of it was thought.
    """
    if sampling.thinking_tokens is not None:
        return None
    if sampling.max_tokens is None:
        return sampling
    left = sampling.max_tokens - tokens
    return replace(sampling, max_tokens=left) if left > 0 else None


def _is_whole(pieces: Iterable[Piece]) -> bool:
    return all(delta.token_ids for delta in _deltas(pieces) if delta.text)


def _ids(pieces: Iterable[Piece]) -> tuple[int, ...]:
    return tuple(each for delta in _deltas(pieces) for each in delta.token_ids)


def _deltas(pieces: Iterable[Piece]) -> list[TextDelta]:
    return [piece for _, piece in pieces if isinstance(piece, TextDelta)]


T = TypeVar("T")


class RecordingClient:
    """Implements `ModelClient` over `inner`, and the optional ports that `inner` has.

    `name` is the program's name of the model. Inside a run every call is written to `calls`, with
    each piece of the answer as it comes. An answer from an earlier part of the run is reused; one
    that was interrupted there is continued where the model can, see `find_continuation`.
    """

    def __new__(cls, inner: ModelClient, *_: object, **__: object) -> RecordingClient:
        made: RecordingClient = object.__new__(fitted(cls, _PORTS, inner))
        return made

    def __init__(self, inner: ModelClient, name: str, calls: CallLog) -> None:
        self._inner = inner
        self._name = name
        self._calls = calls

    @property
    def model(self) -> str:
        return self._inner.model

    async def capabilities(self) -> Capabilities:
        return await self._recorded_answer(("capabilities",), await self._inner.capabilities())

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        place = current_call_site()
        made = self._inner.generate(request) if place is None else self._recorded(place, request)
        async with aclosing(made) as stream:
            async for event in stream:
                yield event

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _recorded(
        self, place: CallSite, request: ModelRequest
    ) -> AsyncGenerator[ModelEvent, None]:
        await self._record_client()
        call = _ModelCall(self._calls, place, self._name, request)
        known = call.known
        if known is not None and known.succeeded:
            for event in events_of(known):
                yield event
            return
        continuation = await find_continuation(self._inner, request, known)
        if continuation is None:
            await call.began()
        else:
            await call.goes_on(continuation)
            for _, piece in continuation.pieces:
                yield piece
        try:
            sent = request if continuation is None else continuation.request
            async with aclosing(self._inner.generate(sent)) as stream:
                async for event in stream:
                    if isinstance(event, Completion):
                        event = event if continuation is None else continuation.completed(event)
                        await call.answered(event)
                    elif continuation is not None and isinstance(event, Prefilled):
                        continue  # the whole prompt's was yielded before
                    else:
                        await call.streamed(event)
                    yield event
        except Exception as error:
            await call.failed(error)
            raise

    async def _recorded_answer(self, question: tuple[Any, ...], answer: T) -> T:
        """`answer`, recorded where a run asks `question` for the first time."""
        await self._record_client()
        await self._record_answer(question, answer)
        return answer

    async def _record_client(self) -> None:
        """Record the client's model and ports, once per run."""
        ports = tuple(name for name, port in OPTIONAL.items() if isinstance(self._inner, port))
        await self._record_answer(("is",), (self._inner.model, *ports))

    async def _record_answer(self, question: tuple[Any, ...], answer: Any) -> None:
        if current_call_site() is not None and not self._calls.is_answered(self._name, question):
            event = ModelTold(self._name, question, answer, self._calls.now_s)
            await self._calls.write(event)


class _ModelCall:
    """One running call, and its events."""

    def __init__(
        self, call_log: CallLog, place: CallSite, name: str, request: ModelRequest
    ) -> None:
        self._call_log = call_log
        self._place = place
        self._name = name
        self._request = request
        self._id = call_log.ids.model(place, call_log.digests.model(name, request))
        self._prompt: tuple[int, ...] = ()
        self.known = call_log.known(place, self._id)

    async def began(self, at_s: float | None = None) -> None:
        """Write that the model is called."""
        at_s = self._call_log.now_s if at_s is None else at_s
        await self._call_log.write(ModelCalled(*self._where(), self._name, self._request, at_s))

    async def goes_on(self, continuation: Continuation) -> None:
        """Log the continuation, and take back the pieces that are not reused."""
        assert self.known is not None
        text = f"the answer of {self._name} goes on after {continuation.received} tokens"
        self._call_log.log(self._place.node, f"{text} that were received before")
        for _, piece in continuation.pieces:
            self._note(piece)
        if continuation.pieces != self.known.pieces:
            await self.began(self.known.called.at_s)
            await self._call_log.write(
                ModelStreamed(*self._where(), continuation.pieces, self._call_log.now_s)
            )

    async def streamed(self, piece: Delta | Prefilled) -> None:
        """Write a piece."""
        self._note(piece)
        now_s = self._call_log.now_s
        await self._call_log.write(ModelStreamed(*self._where(), ((now_s, piece),), now_s))

    async def answered(self, completion: Completion) -> None:
        """Write the answer."""
        await self._ended(completion)

    async def failed(self, error: Exception) -> None:
        """Write why there is none."""
        delay_s = error.retry_after_s if isinstance(error, ModelError) else None
        usage = error.usage if isinstance(error, ModelError) else None
        await self._ended(None, convert(error).failure(), delay_s, usage)

    async def _ended(
        self,
        completion: Completion | None,
        failure: Failure | None = None,
        delay_s: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        where, now_s = self._where(), self._call_log.now_s
        event = ModelAnswered(*where, completion, failure, now_s, self._prompt, delay_s, usage)
        await self._call_log.write(event)

    def _note(self, piece: Delta | Prefilled) -> None:
        if isinstance(piece, Prefilled):
            self._prompt = piece.prompt_token_ids

    def _where(self) -> tuple[NodeId, int, CallId]:
        return self._place.node, self._place.attempt, self._id


class _StartableRecording(RecordingClient):
    async def start(self, show: Callable[[str], None] | None = None) -> None:
        assert isinstance(self._inner, Startable)
        await self._inner.start(show)


class _WarmableRecording(RecordingClient):
    async def warm(self, request: ModelRequest) -> None:
        assert isinstance(self._inner, Warmable)
        await self._inner.warm(request)


class _TokenizingRecording(RecordingClient):
    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        assert isinstance(self._inner, Tokenizing)
        encoding = self._inner.encode(text, special=special)
        return await self._answer(("encode", text, special), encoding)

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        assert isinstance(self._inner, Tokenizing)
        encoding = self._inner.encode_chat(messages, chat_template_kwargs=chat_template_kwargs)
        return await self._answer(chat_question(messages, chat_template_kwargs), encoding)

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        assert isinstance(self._inner, Tokenizing)
        return await self._answer(("decode", token_ids), self._inner.decode(token_ids))

    async def special_token(self, text: str) -> int | None:
        assert isinstance(self._inner, Tokenizing)
        return await self._answer(("special_token", text), self._inner.special_token(text))

    async def _answer(self, question: tuple[Any, ...], call: Awaitable[T]) -> T:
        """The client's answer, or its failure; both are recorded."""
        try:
            answer = await call
        except ModelError as error:
            await self._recorded_answer(question, error.failure())
            raise
        return await self._recorded_answer(question, answer)


_PORTS: Final[Mapping[type, type]] = {
    Startable: _StartableRecording,
    Tokenizing: _TokenizingRecording,
    Warmable: _WarmableRecording,
}
OPTIONAL: Final = {port.__name__: port for port in _PORTS}


def events_of(known: RecordedCall) -> list[ModelEvent]:
    """The events of a call that succeeded, in order."""
    assert isinstance(known.ended, ModelAnswered)
    assert known.ended.completion is not None
    return [*(piece for _, piece in known.pieces), known.ended.completion]
