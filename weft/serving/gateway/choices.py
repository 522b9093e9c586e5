"""The choices of one request, produced at the same time and read as one sequence of events."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from types import TracebackType

from weft.core.errors import ModelUnavailable
from weft.core.ports import ModelClient, ModelEvent, ModelRequest
from weft.core.values import Completion

_MOST_AHEAD = 256
"""Events that a model may be ahead of a client that reads slowly."""


class Choices:
    """A context manager; leaving it cancels what still runs, and waits until it has ended."""

    def __init__(self, client: ModelClient, requests: Sequence[ModelRequest]) -> None:
        self._client = client
        self._requests = requests
        self._events: asyncio.Queue[tuple[int, ModelEvent] | Exception] = asyncio.Queue(_MOST_AHEAD)
        self._tasks: list[asyncio.Task[None]] = []
        self._answers: dict[int, Completion] = {}

    async def __aenter__(self) -> Choices:
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
        """True when every choice has ended."""
        return len(self._answers) == len(self._requests)

    @property
    def answers(self) -> list[Completion]:
        """The choices that have ended, in order."""
        return [self._answers[index] for index in sorted(self._answers)]

    async def next(self, within_s: float | None = None) -> tuple[int, ModelEvent] | None:
        """The next event and its choice; None when there is none within `within_s` seconds.

        Raises: what the model raises, for any choice.
        """
        try:
            async with asyncio.timeout(within_s):
                event = await self._events.get()
        except TimeoutError:
            return None
        if isinstance(event, Exception):
            raise event
        index, said = event
        if isinstance(said, Completion):
            self._answers[index] = said
        return event

    async def _produce(self, index: int, request: ModelRequest) -> None:
        try:
            async with aclosing(self._client.generate(request)) as stream:
                async for event in stream:
                    await self._events.put((index, event))
                    if isinstance(event, Completion):
                        return
            said = f"the stream of {self._client.model} ended without a completion"
            await self._events.put(ModelUnavailable(said))
        except Exception as error:  # noqa: BLE001 - whoever reads decides what it means
            await self._events.put(error)
