"""A tape that call events are written on, and what is made of it; for the tests of this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from weft.core.calls import CallEvent
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Record
from weft.durability.calls import CallLog, Confirmation, Redactor
from weft.engine.scheduler.effects import CALL_SITE, CallSite
from weft.testing import FakeClock
from weft.validation import misfit

T = TypeVar("T")
RUN = RunId("run-1")
NODE = NodeId("pay")


class Tape:
    """Keeps events in order, and which of them were durable; `full` makes durable writes fail."""

    def __init__(self) -> None:
        self.events: list[CallEvent] = []
        self.durable: list[CallEvent] = []
        self.said: list[tuple[NodeId, str]] = []
        self.clock = FakeClock()

    async def write(self, event: CallEvent, durable: bool) -> None:
        if durable:
            await asyncio.sleep(0)
            self.durable.append(event)
        self.events.append(event)

    def log(
        self,
        past: Iterable[Record] = (),
        confirmed: Mapping[str, Confirmation] | None = None,
        redactor: Redactor | None = None,
    ) -> CallLog:
        """The calls of a part of the run, after `past`."""
        return CallLog(
            RUN,
            self.clock.now,
            self.write,
            past=past,
            confirmed=confirmed,
            redactor=redactor,
            log=lambda node, text: self.said.append((node, text)),
            misfit=misfit,
        )

    def run(self, main: Awaitable[T], node: str = NODE, attempt: int = 1) -> T:
        """Carry out `main` in virtual time, as the work of a node."""

        async def work() -> T:
            with at(node, attempt):
                return await main

        return self.clock.run(work())


@contextmanager
def at(node: str, attempt: int = 1) -> Iterator[None]:
    """Inside the `with` block an attempt of `node` is at work."""
    token = CALL_SITE.set(CallSite(NodeId(node), attempt))
    try:
        yield
    finally:
        CALL_SITE.reset(token)


def kinds(events: Iterable[Any]) -> list[str]:
    return [type(event).__name__ for event in events]
