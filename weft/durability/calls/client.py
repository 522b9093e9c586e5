"""A model client whose calls are recorded, continued where they broke off, and not made where
their answer is known.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from weft.core.calls import CallId, ModelAnswered, ModelCalled, ModelStreamed, ModelTold
from weft.core.errors import Failure, ModelError, ModelOverloaded, convert
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
from weft.durability.calls.history import Piece, RecordedCall, fitted
from weft.durability.calls.log import CallLog
from weft.engine.scheduler.effects import CallSite, current_call_site

_MOST_DROPPED: Final = 8
_HALF: Final = "\ufffd"
"""Stands for bytes that are no text: a model that reads it reads something else."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """`pieces` of an answer, `received` tokens, are taken over; `request` asks for the rest.

    `whole`: each piece has its token ids.
    """

    pieces: tuple[Piece, ...]
    request: ModelRequest
    received: int
    whole: bool

    @property
    def text(self) -> str:
        """What is taken over."""
        return "".join(delta.text for delta in _deltas(self.pieces))

    def completed(self, rest: Completion) -> Completion:
        """The whole answer, when `rest` came for `request`.

        It has the token ids and log probabilities that all of it has. What was read again counts
        once, as if the answer had never broken off; the requests were two.
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
    """How `client` goes on with what `known` has of the answer to `request`; None: it cannot.

    It is by token ids where the client takes and tells them, so that greedy decoding comes to the
    tokens of an undisturbed answer; else by a conversation that ends with the unfinished answer,
    whose last word may be cut into other tokens. A seeded sample is drawn anew, and so is what is
    held to a schema or a grammar, calls tools, or thinks before it answers.

    Raises: `ModelError`.
    """
    if known is None or known.ended is not None or not _may_go_on(request, known.pieces):
        return None
    able = await client.capabilities()
    if able.prompt_token_ids and _is_whole(known.pieces):
        prompt = await _prompt(client, request, known.pieces)
        if prompt:
            return await _by_ids(client, prompt, request, known.pieces)
    return await _by_messages(client, able, request, known.pieces)


def _may_go_on(request: ModelRequest, pieces: tuple[Piece, ...]) -> bool:
    sampling = request.sampling
    return (
        (sampling.temperature == 0 or sampling.seed is None)
        and request.decode == AUTOREGRESSIVE
        and not (request.schema or request.grammar or request.tools)
        and not (request.attention or request.placement)
        and all(isinstance(piece, TextDelta | Prefilled) for _, piece in pieces)
        and any(delta.text for delta in _deltas(pieces))
    )


async def _prompt(
    client: ModelClient, request: ModelRequest, pieces: tuple[Piece, ...]
) -> tuple[int, ...]:
    """The token ids of the prompt; none where nobody can tell."""
    told = [piece.prompt_token_ids for _, piece in pieces if isinstance(piece, Prefilled)]
    prompt = request.prompt_token_ids or next(iter(told), ())
    if prompt or not isinstance(client, Tokenizing):
        return prompt
    return await client.encode_chat(request.messages)


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
    if not able.continuation or not request.messages or _HALF in text:
        return None
    whole = _is_whole(pieces)
    received = len(_ids(pieces))
    if not whole:
        if isinstance(client, Tokenizing):
            received = len(await client.encode(text))
        elif request.sampling.max_tokens is not None:
            return None  # nobody can tell how many are left
    sampling = _fewer(request.sampling, received)
    if sampling is None:
        return None
    messages, begun = request.messages, Message("assistant", text)
    if request.continues:
        begun = replace(messages[-1], content=messages[-1].content + text)
        messages = messages[:-1]
    rest = replace(request, messages=(*messages, begun), sampling=sampling)
    return Continuation(pieces, rest, received, whole)


async def _readable(client: Tokenizing, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """`pieces` without the last ones, whose tokens hold more than their text: half a character."""
    for dropped in range(min(_MOST_DROPPED, len(pieces))):
        kept = pieces[: len(pieces) - dropped]
        if await client.decode(_ids(kept)) == "".join(delta.text for delta in _deltas(kept)):
            return kept
    return ()


def _fewer(sampling: Sampling, tokens: int) -> Sampling | None:
    """`sampling` of an answer of which there are `tokens` already; None: there is nothing left."""
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

    `name` is what the program calls the model. Inside a run every call is written to `calls`, with
    each piece of the answer as it comes. An answer that an earlier part of the run has is not asked
    for again; one that broke off there goes on where the model can, see `find_continuation`.
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
        return await self._told(("capabilities",), await self._inner.capabilities())

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
        await self._introduced()
        call = _ModelCall(self._calls, place, self._name, request)
        known = call.known
        if known is not None and known.succeeded:
            for event in events_of(known):
                yield event
            return
        begun = await find_continuation(self._inner, request, known)
        if begun is None:
            await call.began()
        else:
            await call.goes_on(begun)
            for _, piece in begun.pieces:
                yield piece
        try:
            asked = self._inner.generate(request if begun is None else begun.request)
            async with aclosing(asked) as stream:
                async for event in stream:
                    if isinstance(event, Completion):
                        event = event if begun is None else begun.completed(event)
                        await call.answered(event)
                    elif begun is not None and isinstance(event, Prefilled):
                        continue  # that of the whole prompt has been told
                    else:
                        await call.streamed(event)
                    yield event
        except Exception as error:
            await call.failed(error)
            raise

    async def _told(self, question: tuple[Any, ...], answer: T) -> T:
        """`answer`, written down where a run asks for the first time."""
        await self._introduced()
        await self._write_down(question, answer)
        return answer

    async def _introduced(self) -> None:
        """Write down what the client is, where that is not done."""
        ports = tuple(name for name, port in OPTIONAL.items() if isinstance(self._inner, port))
        await self._write_down(("is",), (self._inner.model, *ports))

    async def _write_down(self, question: tuple[Any, ...], answer: Any) -> None:
        if current_call_site() is not None and not self._calls.told(self._name, question):
            event = ModelTold(self._name, question, answer, self._calls.now_s)
            await self._calls.write(event)


class _ModelCall:
    """One call on its way, and its events."""

    def __init__(self, book: CallLog, place: CallSite, name: str, request: ModelRequest) -> None:
        self._book = book
        self._place = place
        self._name = name
        self._request = request
        self._id = book.ids.model(place, book.digests.model(name, request))
        self._prompt: tuple[int, ...] = ()
        self.known = book.known(place, self._id)

    async def began(self, at_s: float | None = None) -> None:
        """Write that the model is asked."""
        at_s = self._book.now_s if at_s is None else at_s
        await self._book.write(ModelCalled(*self._where(), self._name, self._request, at_s))

    async def goes_on(self, begun: Continuation) -> None:
        """Say so, and take back the pieces that are not taken over."""
        assert self.known is not None
        said = f"the answer of {self._name} goes on after {begun.received} tokens"
        self._book.log(self._place.node, f"{said} that were received before")
        for _, piece in begun.pieces:
            self._note(piece)
        if begun.pieces != self.known.pieces:
            await self.began(self.known.called.at_s)
            await self._book.write(ModelStreamed(*self._where(), begun.pieces, self._book.now_s))

    async def streamed(self, piece: Delta | Prefilled) -> None:
        """Write a piece."""
        self._note(piece)
        now_s = self._book.now_s
        await self._book.write(ModelStreamed(*self._where(), ((now_s, piece),), now_s))

    async def answered(self, completion: Completion) -> None:
        """Write the answer."""
        await self._ended(completion)

    async def failed(self, error: Exception) -> None:
        """Write why there is none."""
        delay_s = error.retry_after_s if isinstance(error, ModelOverloaded) else None
        usage = error.usage if isinstance(error, ModelError) else None
        await self._ended(None, convert(error).failure(), delay_s, usage)

    async def _ended(
        self,
        completion: Completion | None,
        failure: Failure | None = None,
        delay_s: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        where, now_s = self._where(), self._book.now_s
        event = ModelAnswered(*where, completion, failure, now_s, self._prompt, delay_s, usage)
        await self._book.write(event)

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
        asked = self._inner.encode(text, special=special)
        return await self._answer(("encode", text, special), asked)

    async def encode_chat(self, messages: tuple[Message, ...]) -> tuple[int, ...]:
        assert isinstance(self._inner, Tokenizing)
        return await self._answer(("encode_chat", messages), self._inner.encode_chat(messages))

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        assert isinstance(self._inner, Tokenizing)
        return await self._answer(("decode", token_ids), self._inner.decode(token_ids))

    async def special_token(self, text: str) -> int | None:
        assert isinstance(self._inner, Tokenizing)
        return await self._answer(("special_token", text), self._inner.special_token(text))

    async def _answer(self, question: tuple[Any, ...], asked: Awaitable[T]) -> T:
        """What the client says; that it cannot is written down too, for the program goes on."""
        try:
            answer = await asked
        except ModelError as error:
            await self._told(question, error.failure())
            raise
        return await self._told(question, answer)


_PORTS: Final[Mapping[type, type]] = {
    Startable: _StartableRecording,
    Tokenizing: _TokenizingRecording,
    Warmable: _WarmableRecording,
}
OPTIONAL: Final = {port.__name__: port for port in _PORTS}


def events_of(known: RecordedCall) -> list[ModelEvent]:
    """What a call that has succeeded gave, in order."""
    assert isinstance(known.ended, ModelAnswered)
    assert known.ended.completion is not None
    return [*(piece for _, piece in known.pieces), known.ended.completion]
