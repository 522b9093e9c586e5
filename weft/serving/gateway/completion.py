"""Performs one chat completion: waits for a slot, asks the model, writes the answer.

It ends early when the client disconnects or the gateway stops.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from weft.core.errors import ModelOutputError, ModelTimeout, ModelUnavailable
from weft.core.generated_text import is_blank, without_thought
from weft.core.ports import ModelClient, ModelEvent, ModelRequest, Prefilled
from weft.core.values import Completion
from weft.decoding.diffusion.guard.priors import PriorLimits
from weft.serving.gateway.admission import AdmissionQueue
from weft.serving.gateway.exchange import GatewayExchange, GatewayMetrics
from weft.serving.gateway.problem import ApiProblem, RequestRefused
from weft.serving.gateway.reply import GatewayResponse, ReplyForm, delta_of

_MAX_AHEAD = 256
"""The most events by which a model may be ahead of a slow client."""


class ChoiceStreams:
    """The streams of all choices; leaving the context cancels them and waits for their end."""

    def __init__(self, client: ModelClient, requests: Sequence[ModelRequest]) -> None:
        self._client = client
        self._requests = requests
        self._events: asyncio.Queue[tuple[int, ModelEvent] | Exception] = asyncio.Queue(_MAX_AHEAD)
        self._tasks: list[asyncio.Task[None]] = []
        self._answers: dict[int, Completion] = {}

    async def __aenter__(self) -> ChoiceStreams:
        self._tasks = [
            asyncio.create_task(self._produce(index, request))
            for index, request in enumerate(self._requests)
        ]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    @property
    def complete(self) -> bool:
        """Whether every choice has ended."""
        return len(self._answers) == len(self._requests)

    @property
    def answers(self) -> list[Completion]:
        """The finished choices, in order."""
        return [self._answers[index] for index in sorted(self._answers)]

    async def next(self, within_s: float | None = None) -> tuple[int, ModelEvent] | None:
        """The next event and its choice; None when there is none within `within_s` seconds.

        Raises: the errors of the model, for any choice.
        """
        try:
            async with asyncio.timeout(within_s):
                event = await self._events.get()
        except TimeoutError:
            return None
        if isinstance(event, Exception):
            raise event
        index, item = event
        if isinstance(item, Completion):
            self._answers[index] = item
        return event

    async def _produce(self, index: int, request: ModelRequest) -> None:
        try:
            async with aclosing(self._client.generate(request)) as stream:
                async for event in stream:
                    await self._events.put((index, event))
                    if isinstance(event, Completion):
                        return
            text = f"the stream of {self._client.model} ended without a completion"
            await self._events.put(ModelUnavailable(text))
        except Exception as error:  # noqa: BLE001 - raised in `next`
            await self._events.put(error)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One served model. `fields` are further fields of request bodies that its client understands.

    They are passed on in `ModelRequest.extra`. `created` is in Unix seconds. `priors`: limits on
    the text that callers' schemas put into an answer before the model has written any; None: not
    checked. `runs`: a run answers; where it is recorded, the client calls the function
    `ModelRequest.extra["began"]` with its id.
    """

    name: str
    client: ModelClient
    fields: frozenset[str] = frozenset()
    description: str = ""
    created: int = 0
    priors: PriorLimits | None = None
    runs: bool = False

    def card(self) -> dict[str, object]:
        """The model as `/v1/models` lists it."""
        card: dict[str, object] = {
            "id": self.name,
            "object": "model",
            "created": self.created,
            "owned_by": "weft",
        }
        return {**card, "description": self.description} if self.description else card

    def check(self, request: ModelRequest) -> None:
        """Raises: `ModelRequestError` for a schema with too much text in it."""
        if self.priors is not None and request.schema is not None:
            self.priors.check_schema(request.schema)

    def check_answer(self, request: ModelRequest, answer: Completion) -> None:
        """Raises: `ModelOutputError` for a complete answer of a model that says nothing.

        Workflows decide that themselves. A stop text may end an answer at once, and so may a
        continuation end.
        """
        wanted = not (self.runs or request.continues) and answer.stop is None
        empty = answer.finish_reason == "stop" and is_blank(without_thought(answer.text))
        if wanted and empty:
            raise ModelOutputError(f"{self.name} answered nothing")


_GRACE_S = 1.0
"""The extra time in which a model may still report its own timeout."""


@dataclass(frozen=True, slots=True)
class CheckedChat:
    """A checked request. `keep_alive_s`: the silence after which a stream gets a comment."""

    served: ServedModel
    requests: Sequence[ModelRequest]
    timeout_s: float
    keep_alive_s: float
    stream: bool
    include_usage: bool


class CompletionWriter:
    """Writes the answer to one request to one response."""

    def __init__(
        self,
        checked: CheckedChat,
        exchange: GatewayExchange,
        admission: AdmissionQueue,
        metrics: GatewayMetrics,
    ) -> None:
        self._checked = checked
        self._exchange = exchange
        self._admission = admission
        self._metrics = metrics
        name = f"chatcmpl-{uuid.uuid4().hex}"
        self._form = ReplyForm(name, checked.served.name, int(time.time()))
        self._begun: set[int] = set()

    async def write(self, response: GatewayResponse) -> None:
        """Answer on `response`.

        Raises: `RequestRefused` when there is no slot, and the errors of the model, possibly after
        the stream has begun.
        """
        checked = self._checked
        try:
            async with (
                asyncio.timeout(checked.timeout_s + _GRACE_S),
                self._admission.admitted(len(checked.requests)),
                ChoiceStreams(checked.served.client, checked.requests) as choices,
            ):
                await (self._stream if checked.stream else self._whole)(choices, response)
        except TimeoutError:
            raise ModelTimeout(f"no answer within {checked.timeout_s:g} s") from None
        self._metrics.spent(checked.served.name, choices.answers)

    async def _whole(self, choices: ChoiceStreams, response: GatewayResponse) -> None:
        while not choices.complete:
            if (event := await choices.next()) is not None:
                self._check(*event)
        await response.whole(self._form.whole(choices.answers))

    async def _stream(self, choices: ChoiceStreams, response: GatewayResponse) -> None:
        while not choices.complete:
            event = await choices.next(self._checked.keep_alive_s)
            if event is None:
                await response.silence()
            elif not isinstance(event[1], Prefilled):
                await self._write_event(response, *event)
        if self._checked.include_usage:
            await response.event(self._form.usage_chunk(choices.answers))
        await response.end()

    async def _write_event(self, response: GatewayResponse, index: int, event: ModelEvent) -> None:
        self._check(index, event)
        if not self._begun:
            self._metrics.first_token(self._exchange)
        if index not in self._begun:
            self._begun.add(index)
            await self._chunk(response, index, {"role": "assistant", "content": ""})
        if isinstance(event, Completion):
            await self._chunk(response, index, {}, event)
        elif delta := delta_of(event):
            await self._chunk(response, index, delta)

    def _check(self, index: int, event: ModelEvent) -> None:
        if isinstance(event, Completion):
            self._checked.served.check_answer(self._checked.requests[index], event)

    async def _chunk(
        self,
        response: GatewayResponse,
        index: int,
        delta: dict[str, Any],
        end: Completion | None = None,
    ) -> None:
        chunk = self._form.chunk(index, delta, end)
        if self._checked.include_usage:
            chunk["usage"] = None
        await response.event(chunk)


STOPPED = ApiProblem(503, "the gateway is shutting down", "server_error", "shutting_down")


async def while_wanted(
    work: Coroutine[Any, Any, None],
    response: GatewayResponse,
    receive: Receive,
    stopped: asyncio.Event,
) -> None:
    """Run `work`, which writes `response`, until the client disconnects or `stopped` is set.

    Raises: the errors of `work`; `ClientDisconnect`; `RequestRefused` with `STOPPED`.
    """
    working = asyncio.create_task(work)
    gone = asyncio.create_task(_gone(response, receive))
    ending = asyncio.create_task(stopped.wait())
    tasks: tuple[asyncio.Task[Any], ...] = (working, gone, ending)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        left, stopping = gone.done(), ending.done()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    if not working.cancelled():
        working.result()
    elif left:
        raise ClientDisconnect
    elif stopping:
        raise RequestRefused(STOPPED)


async def _gone(response: GatewayResponse, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    if response.complete:  # a server sends that also when there is nothing more to send
        await asyncio.Event().wait()
