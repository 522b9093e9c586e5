"""What all calls of one fleet share. Knows no single call."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

from weft.core.errors import ModelUnavailable
from weft.core.ports.model import Capabilities, ModelEvent, ModelRequest
from weft.serving.fleet.admission import Admission
from weft.serving.fleet.deadline import Deadline
from weft.serving.fleet.health import Health
from weft.serving.fleet.options import FleetOptions
from weft.serving.fleet.replica import Replica
from weft.serving.fleet.stats import FleetStats
from weft.serving.fleet.ticket import Ticket


@dataclass(frozen=True, slots=True)
class Desk:
    """The door, the watch over the replicas, the settings and the counts."""

    admission: Admission
    health: Health
    options: FleetOptions
    stats: FleetStats

    def addressed(
        self, request: ModelRequest, ticket: Ticket, deadline: Deadline, offered: Capabilities
    ) -> ModelRequest:
        """`request` with its place in the order, where servers have one, and the time it has."""
        ordered = offered.priority and self.options.order == "program"
        return replace(
            request,
            priority=ticket.rank.urgency if ordered else request.priority,
            timeout_s=deadline.left_s(),
        )

    async def next_event(
        self,
        stream: AsyncGenerator[ModelEvent, None],
        ticket: Ticket,
        replica: Replica,
        deadline: Deadline,
    ) -> ModelEvent:
        """The stream's next event; the first one shows that the prompt has been computed.

        Raises: `ModelTimeout`, `ModelUnavailable` when the stream is over, and what it raises.
        """
        try:
            event = await deadline.wait(stream.__anext__)
        except StopAsyncIteration:
            raise ModelUnavailable(f"the stream of {replica.name} ended too early") from None
        self.admission.prefilled(ticket, replica)
        return event
