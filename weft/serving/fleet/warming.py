"""Prompts computed ahead: what counts is that a replica has them in its cache, not the answer."""

from __future__ import annotations

from contextlib import aclosing

from weft.core.errors import ModelOverloaded, ModelTimeout, ModelUnavailable
from weft.core.ports.clock import Clock
from weft.core.ports.model import ModelRequest
from weft.core.values import Completion
from weft.serving.fleet.deadline import Deadline
from weft.serving.fleet.desk import Desk
from weft.serving.fleet.replica import Replica
from weft.serving.fleet.ticket import Ticket


async def warm(desk: Desk, request: ModelRequest, ticket: Ticket, clock: Clock) -> None:
    """Send `request` if a replica is idle enough. A replica that fails is no error here.

    Raises: what the replica's client raises for a request that it refuses.
    """
    replica = desk.admission.try_idle(ticket)
    if replica is None:
        return
    deadline = Deadline(clock, request.timeout_s, replica.client.model)
    try:
        await _prefill(desk, request, ticket, replica, deadline)
        desk.stats.warmed += 1
    except ModelOverloaded as error:
        desk.health.overloaded(replica, error)
    except ModelUnavailable as error:
        desk.health.failed(replica, error)
    except ModelTimeout:
        return
    finally:
        deadline.close()
        desk.admission.leave(ticket, replica)


async def _prefill(
    desk: Desk, request: ModelRequest, ticket: Ticket, replica: Replica, deadline: Deadline
) -> None:
    offered = await deadline.wait(replica.client.capabilities)
    request = desk.addressed(request, ticket, deadline, offered)
    desk.stats.sent += 1
    async with aclosing(replica.client.generate(request)) as stream:
        while not isinstance(await desk.next_event(stream, ticket, replica, deadline), Completion):
            continue
