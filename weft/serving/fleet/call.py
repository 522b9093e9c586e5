"""One call from its arrival to its end: waits its turn, streams, goes on elsewhere if it must."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from weft.core.errors import ModelError, ModelOverloaded, ModelUnavailable
from weft.core.ports.model import (
    ModelEvent,
    ModelRequest,
    Prefilled,
    ReasoningDelta,
    TextDelta,
)
from weft.core.values import Completion
from weft.serving.fleet.deadline import Deadline
from weft.serving.fleet.desk import Desk
from weft.serving.fleet.leg import Diverged, Leg
from weft.serving.fleet.replica import Replica
from weft.serving.fleet.resume import may_go_on, next_leg
from weft.serving.fleet.ticket import Ticket
from weft.serving.fleet.transcript import Transcript


class Call:
    """Streams the answer to one request; see `Fleet.generate` for what it raises."""

    def __init__(
        self, desk: Desk, request: ModelRequest, ticket: Ticket, deadline: Deadline
    ) -> None:
        self._desk = desk
        self._ticket = ticket
        self._deadline = deadline
        self._transcript = Transcript(request)
        self._retries = 0
        self._moves = 0
        self._broken: ModelError | None = None
        self._done = False

    async def events(self) -> AsyncGenerator[ModelEvent, None]:
        """The answer."""
        admission = self._desk.admission
        while not self._done:
            first = self._retries == self._moves == 0
            self._desk.health.check()
            enter = partial(admission.enter, self._ticket, bounded=first)
            replica = await self._deadline.wait(enter)
            try:
                async with aclosing(self._on(replica)) as events:
                    async for event in events:
                        yield event
            except Diverged as error:
                raise ModelUnavailable(error.message, hint=error.hint) from self._broken
            except ModelOverloaded as error:
                self._refused(replica, error)
            except ModelUnavailable as error:
                self._broke(replica, error)
            finally:
                admission.leave(self._ticket, replica)

    async def _on(self, replica: Replica) -> AsyncGenerator[ModelEvent, None]:
        offered = await self._deadline.wait(replica.client.capabilities)
        leg = next_leg(self._transcript, offered)
        if isinstance(leg, Completion):
            self._done = True
            yield replace(leg, model=replica.client.model)
            return
        if leg is None:
            assert self._broken is not None
            raise Diverged(self._broken.message, hint=self._broken.hint)
        self._count(leg)
        request = self._desk.addressed(leg.request, self._ticket, self._deadline, offered)
        async with aclosing(replica.client.generate(request)) as stream:
            while not self._done:
                event = await self._desk.next_event(stream, self._ticket, replica, self._deadline)
                seen = self._seen(event, leg)
                if isinstance(event, Completion):
                    # Now: a caller who has the whole answer may not come back.
                    self._desk.health.succeeded(replica)
                for out in seen:
                    yield out

    def _seen(self, event: ModelEvent, leg: Leg) -> list[ModelEvent]:
        if isinstance(event, Prefilled):
            return [event] if self._transcript.prefilled(event) else []
        if isinstance(event, TextDelta | ReasoningDelta):
            self._desk.stats.received_tokens += len(event.token_ids)
        self._done = isinstance(event, Completion)
        return leg.take(event)

    def _count(self, leg: Leg) -> None:
        stats = self._desk.stats
        stats.sent += 1
        if not self._transcript.empty:
            if leg.request is self._transcript.request:
                stats.repeated += 1
            else:
                stats.resumed += 1

    def _refused(self, replica: Replica, error: ModelOverloaded) -> None:
        """Raises `error` unless the call may be asked again."""
        if self._desk.options.retries:
            self._desk.health.overloaded(replica, error)
        if self._retries >= self._desk.options.retries or not may_go_on(self._transcript):
            raise error
        self._retries += 1
        self._broken = error
        self._desk.stats.retried += 1

    def _broke(self, replica: Replica, error: ModelUnavailable) -> None:
        """Raises `error` unless the call may go on elsewhere."""
        if self._desk.options.failover:
            self._desk.health.failed(replica, error)
        if self._moves >= self._desk.options.failover or not may_go_on(self._transcript):
            raise error
        self._moves += 1
        self._broken = error
        self._desk.stats.moved += 1
