"""Events of one step reach their loop together, in order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from weft.core.ports.model import ModelRequest, TextDelta
from weft.core.values import Message
from weft.serving.local.ticket import Ticket, held_events

REQUEST = ModelRequest(messages=(Message("user", "Hello."),))


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts how often another thread wakes it."""

    woken = 0

    def call_soon_threadsafe(self, *args: Any, **options: Any) -> asyncio.Handle:  # type: ignore[override]
        self.woken += 1
        return super().call_soon_threadsafe(*args, **options)


def test_events_of_a_step_wake_a_loop_once() -> None:
    loop = CountingLoop()
    try:
        loop.run_until_complete(wakes_once(loop))
    finally:
        loop.close()


async def wakes_once(loop: CountingLoop) -> None:
    tickets = [Ticket(REQUEST, loop) for _ in range(3)]
    with held_events():
        for text in ("a", "b"):
            for ticket in tickets:
                ticket.put(TextDelta(text))
        assert loop.woken == 0
    assert loop.woken == 1
    for ticket in tickets:
        assert [await ticket.get(), await ticket.get()] == [TextDelta("a"), TextDelta("b")]
    tickets[0].put(TextDelta("c"))
    assert loop.woken == 2
    assert await tickets[0].get() == TextDelta("c")


def test_events_are_sent_although_the_step_fails() -> None:
    async def main() -> None:
        ticket = Ticket(REQUEST, asyncio.get_running_loop())
        with pytest.raises(RuntimeError, match="broken"):
            fail_after(ticket)
        assert await ticket.get() == TextDelta("a")

    asyncio.run(main())


def fail_after(ticket: Ticket) -> None:
    with held_events():
        ticket.put(TextDelta("a"))
        raise RuntimeError("broken")


def test_a_closed_loop_cancels_its_tickets_only() -> None:
    gone, loop = asyncio.new_event_loop(), asyncio.new_event_loop()
    left, kept = Ticket(REQUEST, gone), Ticket(REQUEST, loop)
    gone.close()
    with held_events():
        left.put(TextDelta("a"))
        kept.put(TextDelta("b"))
    assert left.cancelled
    assert not kept.cancelled
    assert loop.run_until_complete(kept.get()) == TextDelta("b")
    loop.close()
