"""One call from arrival to end: it queues, streams, and continues on another replica if its breaks.

A warm call computes a prompt ahead of time, so that a replica has it in its prefix cache.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

from weft.core.errors import ModelError, ModelOverloaded, ModelTimeout, ModelUnavailable
from weft.core.ports.model import (
    Capabilities,
    ModelEvent,
    ModelRequest,
    Prefilled,
    ReasoningDelta,
    TextDelta,
)
from weft.core.values import Completion
from weft.serving.deadline import Deadline
from weft.serving.fleet.admission import FleetAdmission
from weft.serving.fleet.health import ReplicaHealth
from weft.serving.fleet.options import FleetOptions
from weft.serving.fleet.order import QueuedCall
from weft.serving.fleet.replica import FleetReplica
from weft.serving.fleet.resume import StreamDiverged, UpstreamAttempt, next_attempt, resumable
from weft.serving.fleet.stats import FleetStats
from weft.serving.fleet.transcript import Transcript


@dataclass(frozen=True, slots=True)
class FleetState:
    """Admission, replica health, options and counts: what all calls of a fleet share."""

    admission: FleetAdmission
    health: ReplicaHealth
    options: FleetOptions
    stats: FleetStats

    def addressed(
        self,
        request: ModelRequest,
        ticket: QueuedCall,
        deadline: Deadline,
        offered: Capabilities,
    ) -> ModelRequest:
        """`request` with its remaining time, and with its rank where the server has priorities."""
        ordered = offered.priority and self.options.order == "program"
        return replace(
            request,
            priority=ticket.rank.urgency if ordered else request.priority,
            timeout_s=deadline.left_s,
        )

    async def next_event(
        self,
        stream: AsyncGenerator[ModelEvent, None],
        ticket: QueuedCall,
        replica: FleetReplica,
        deadline: Deadline,
    ) -> ModelEvent:
        """The stream's next event. The first one shows that the prompt has been computed.

        Raises: `ModelTimeout`; `ModelUnavailable` when the stream ends early; the stream's errors.
        """
        try:
            event = await deadline.wait(anext(stream))
        except StopAsyncIteration:
            raise ModelUnavailable(f"the stream of {replica.name} ended too early") from None
        self.admission.prefilled(ticket, replica)
        return event


class FleetCall:
    """Streams the answer to one request; see `Fleet.generate` for what it raises."""

    def __init__(
        self, fleet: FleetState, request: ModelRequest, ticket: QueuedCall, deadline: Deadline
    ) -> None:
        self._fleet = fleet
        self._ticket = ticket
        self._deadline = deadline
        self._transcript = Transcript(request)
        self._retries = 0
        self._moves = 0
        self._last_error: ModelError | None = None
        self._done = False

    async def events(self) -> AsyncGenerator[ModelEvent, None]:
        """Events of the answer, over as many replicas as it takes."""
        admission = self._fleet.admission
        while not self._done:
            first = self._retries == self._moves == 0
            self._fleet.health.check()
            enter = partial(admission.enter, self._ticket, bounded=first)
            replica = await self._deadline.wait(enter())
            try:
                async with aclosing(self._attempt(replica)) as events:
                    async for event in events:
                        yield event
            except StreamDiverged as error:
                raise ModelUnavailable(error.message, hint=error.hint) from self._last_error
            except ModelOverloaded as error:
                self._retry(replica, error)
            except ModelUnavailable as error:
                self._fail_over(replica, error)
            finally:
                admission.leave(self._ticket, replica)

    async def _attempt(self, replica: FleetReplica) -> AsyncGenerator[ModelEvent, None]:
        offered = await self._deadline.wait(replica.client.capabilities())
        attempt = next_attempt(self._transcript, offered)
        if isinstance(attempt, Completion):
            self._done = True
            yield replace(attempt, model=replica.client.model)
            return
        if attempt is None:
            assert self._last_error is not None
            raise StreamDiverged(self._last_error.message, hint=self._last_error.hint)
        self._count(attempt)
        request = self._fleet.addressed(attempt.request, self._ticket, self._deadline, offered)
        async with aclosing(replica.client.generate(request)) as stream:
            while not self._done:
                event = await self._fleet.next_event(stream, self._ticket, replica, self._deadline)
                outputs = self._take(event, attempt)
                if isinstance(event, Completion):
                    # Now: a caller who has the whole answer may not come back.
                    self._fleet.health.succeeded(replica)
                for output in outputs:
                    yield output

    def _take(self, event: ModelEvent, attempt: UpstreamAttempt) -> list[ModelEvent]:
        if isinstance(event, Prefilled):
            return [event] if self._transcript.prefilled(event) else []
        if isinstance(event, TextDelta | ReasoningDelta):
            self._fleet.stats.received_tokens += len(event.token_ids)
        self._done = isinstance(event, Completion)
        return attempt.take(event)

    def _count(self, attempt: UpstreamAttempt) -> None:
        stats = self._fleet.stats
        stats.sent += 1
        if not self._transcript.empty:
            if attempt.request is self._transcript.request:
                stats.repeated += 1
            else:
                stats.resumed += 1

    def _retry(self, replica: FleetReplica, error: ModelOverloaded) -> None:
        """Raises `error` unless the call may be sent again."""
        if self._fleet.options.retries:
            self._fleet.health.overloaded(replica, error)
        if self._retries >= self._fleet.options.retries or not resumable(self._transcript):
            raise error
        self._retries += 1
        self._last_error = error
        self._fleet.stats.retried += 1

    def _fail_over(self, replica: FleetReplica, error: ModelUnavailable) -> None:
        """Raises `error` unless the call may continue on another replica."""
        if self._fleet.options.failover:
            self._fleet.health.failed(replica, error)
        if self._moves >= self._fleet.options.failover or not resumable(self._transcript):
            raise error
        self._moves += 1
        self._last_error = error
        self._fleet.stats.moved += 1


async def warm(fleet: FleetState, request: ModelRequest, ticket: QueuedCall) -> None:
    """Send `request` if a replica is idle enough. A replica that fails raises nothing here.

    Raises: the error of the replica's client for an invalid request.
    """
    replica = fleet.admission.try_idle(ticket)
    if replica is None:
        return
    try:
        deadline = Deadline(request.timeout_s)
        await _prefill(fleet, request, ticket, replica, deadline)
        fleet.stats.warmed += 1
    except ModelOverloaded as error:
        fleet.health.overloaded(replica, error)
    except ModelUnavailable as error:
        fleet.health.failed(replica, error)
    except ModelTimeout:
        return
    finally:
        fleet.admission.leave(ticket, replica)


async def _prefill(
    fleet: FleetState,
    request: ModelRequest,
    ticket: QueuedCall,
    replica: FleetReplica,
    deadline: Deadline,
) -> None:
    offered = await deadline.wait(replica.client.capabilities())
    request = fleet.addressed(request, ticket, deadline, offered)
    fleet.stats.sent += 1
    async with aclosing(replica.client.generate(request)) as stream:
        while not isinstance(await fleet.next_event(stream, ticket, replica, deadline), Completion):
            continue
