"""Carries out one chat completion: waits for a place, asks the model, writes what comes back."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.core.errors import ModelTimeout
from weft.core.ports import ModelEvent, ModelRequest, Prefilled
from weft.core.values import Completion
from weft.serving.gateway.admission import Admission
from weft.serving.gateway.choices import Choices
from weft.serving.gateway.exchange import Exchange
from weft.serving.gateway.metrics import Metrics
from weft.serving.gateway.reply import ReplyForm, delta_of
from weft.serving.gateway.response import Response
from weft.serving.gateway.served import Served

_GRACE_S = 1.0
"""How much longer than its time a model may take to say itself that its time is over."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that has been checked. `keep_alive_s`: a silent stream gets a comment then."""

    served: Served
    requests: Sequence[ModelRequest]
    timeout_s: float
    keep_alive_s: float
    stream: bool
    include_usage: bool


class Answering:
    """Answers one request on one response."""

    def __init__(
        self, asked: Asked, exchange: Exchange, admission: Admission, metrics: Metrics
    ) -> None:
        self._asked = asked
        self._exchange = exchange
        self._admission = admission
        self._metrics = metrics
        name = f"chatcmpl-{uuid.uuid4().hex}"
        self._form = ReplyForm(name, asked.served.name, int(time.time()))
        self._begun: set[int] = set()

    async def write(self, response: Response) -> None:
        """Answer on `response`.

        Raises: `Refused` when there is no place, and what the model raises; a stream may have begun
        by then.
        """
        asked = self._asked
        try:
            async with (
                asyncio.timeout(asked.timeout_s + _GRACE_S),
                self._admission.admitted(len(asked.requests)),
                Choices(asked.served.client, asked.requests) as choices,
            ):
                await (self._stream if asked.stream else self._whole)(choices, response)
        except TimeoutError:
            raise ModelTimeout(f"no answer within {asked.timeout_s:g} s") from None
        self._metrics.spent(asked.served.name, choices.answers)

    async def _whole(self, choices: Choices, response: Response) -> None:
        while not choices.complete:
            await choices.next()
        await response.whole(self._form.whole(choices.answers))

    async def _stream(self, choices: Choices, response: Response) -> None:
        while not choices.complete:
            said = await choices.next(self._asked.keep_alive_s)
            if said is None:
                await response.silence()
            elif not isinstance(said[1], Prefilled):
                await self._tell(response, *said)
        if self._asked.include_usage:
            await response.event(self._form.usage_chunk(choices.answers))
        await response.end()

    async def _tell(self, response: Response, index: int, event: ModelEvent) -> None:
        if not self._begun:
            self._metrics.first_token(self._exchange)
        if index not in self._begun:
            self._begun.add(index)
            await self._chunk(response, index, {"role": "assistant", "content": ""})
        if isinstance(event, Completion):
            await self._chunk(response, index, {}, event)
        elif delta := delta_of(event):
            await self._chunk(response, index, delta)

    async def _chunk(
        self, response: Response, index: int, delta: dict[str, Any], end: Completion | None = None
    ) -> None:
        chunk = self._form.chunk(index, delta, end)
        if self._asked.include_usage:
            chunk["usage"] = None
        await response.event(chunk)
