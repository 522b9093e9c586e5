"""A model client whose calls are recorded, and not made where their answer is known.

Knows no journal: calls pass through here on their way.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, TypeVar

from weft.core.calls import CallId, ModelAnswered, ModelCalled, ModelStreamed, ModelTold
from weft.core.conversion import convert
from weft.core.errors import Failure, ModelError, ModelOverloaded
from weft.core.ids import NodeId
from weft.core.ports import (
    Capabilities,
    Delta,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Prefilled,
    Startable,
    Tokenizing,
    Warmable,
)
from weft.core.values import Completion, Message, Usage
from weft.engine.cassette.book import CallBook, Known
from weft.engine.cassette.continued import Continued, continued
from weft.engine.cassette.fitted import fitted
from weft.engine.effects import current_place
from weft.engine.place import Place

T = TypeVar("T")


class RecordingClient:
    """Implements `ModelClient` over `inner`, and the optional ports that `inner` has.

    `name` is what the program calls the model. Inside a run every call is written to `calls`, with
    each piece of the answer as it comes. An answer that an earlier part of the run has is not asked
    for again; one that broke off there goes on where the model can, see `continued`.
    """

    def __new__(cls, inner: ModelClient, *_: object, **__: object) -> RecordingClient:
        made: RecordingClient = object.__new__(fitted(cls, _PORTS, inner))
        return made

    def __init__(self, inner: ModelClient, name: str, calls: CallBook) -> None:
        self._inner = inner
        self._name = name
        self._calls = calls

    @property
    def model(self) -> str:
        return self._inner.model

    async def capabilities(self) -> Capabilities:
        return await self._told(("capabilities",), await self._inner.capabilities())

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        place = current_place()
        made = self._inner.generate(request) if place is None else self._recorded(place, request)
        async with aclosing(made) as stream:
            async for event in stream:
                yield event

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _recorded(
        self, place: Place, request: ModelRequest
    ) -> AsyncGenerator[ModelEvent, None]:
        await self._introduced()
        call = _Call(self._calls, place, self._name, request)
        known = call.known
        if known is not None and known.succeeded:
            for event in events_of(known):
                yield event
            return
        begun = await continued(self._inner, request, known)
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
        if current_place() is not None and not self._calls.told(self._name, question):
            event = ModelTold(self._name, question, answer, self._calls.now_s)
            await self._calls.write(event)


class _Call:
    """One call on its way, and its events."""

    def __init__(self, book: CallBook, place: Place, name: str, request: ModelRequest) -> None:
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

    async def goes_on(self, begun: Continued) -> None:
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


class _Starting(RecordingClient):
    async def start(self, show: Callable[[str], None] | None = None) -> None:
        assert isinstance(self._inner, Startable)
        await self._inner.start(show)


class _Warming(RecordingClient):
    async def warm(self, request: ModelRequest) -> None:
        assert isinstance(self._inner, Warmable)
        await self._inner.warm(request)


class _Tokenizing(RecordingClient):
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
    Startable: _Starting,
    Tokenizing: _Tokenizing,
    Warmable: _Warming,
}
OPTIONAL: Final = {port.__name__: port for port in _PORTS}


def events_of(known: Known) -> list[ModelEvent]:
    """What a call that has succeeded gave, in order."""
    assert isinstance(known.ended, ModelAnswered)
    assert known.ended.completion is not None
    return [*(piece for _, piece in known.pieces), known.ended.completion]
