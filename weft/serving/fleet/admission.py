"""The door to the replicas: calls wait here until one may start, and start in order.

Knows nothing of streams and failures: a call enters, runs somewhere else, and leaves.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence

from weft.core.errors import ModelOverloaded, WeftError
from weft.core.ports.clock import Clock
from weft.serving.fleet.holding import Holding
from weft.serving.fleet.options import FleetOptions
from weft.serving.fleet.replica import Replica
from weft.serving.fleet.routing import Router
from weft.serving.fleet.stats import FleetStats
from weft.serving.fleet.ticket import Ticket

_LOOKAHEAD = 32
"""How many calls are asked whether they want a free place before the first of them must take it."""


class Admission:
    """Grants calls a place on a replica. Whoever enters leaves, whatever happened in between."""

    def __init__(
        self, replicas: Sequence[Replica], options: FleetOptions, clock: Clock, stats: FleetStats
    ) -> None:
        self._replicas = replicas
        self._options = options
        self._stats = stats
        self._router = Router(options)
        self._waiting: list[Ticket] = []
        self._holding = Holding(options, clock, stats, self._release)
        self._closed: Callable[[], WeftError] | None = None

    @property
    def waiting(self) -> int:
        """How many calls wait for a replica."""
        return len(self._waiting)

    async def enter(self, ticket: Ticket, bounded: bool = True) -> Replica:
        """Wait until the call may start, and return where. A caller that is cancelled is forgotten.

        Raises: `ModelOverloaded` when it cannot start and `max_waiting` calls wait already
        (`bounded`); what `refuse_all` and `close` are told.
        """
        if self._closed is not None:
            raise self._closed()
        ticket.granted = asyncio.get_running_loop().create_future()
        self._queue(ticket)
        self.dispatch()
        if not ticket.granted.done():
            self._check_length(ticket, bounded)
        try:
            return await ticket.granted
        except asyncio.CancelledError:
            self._take_back(ticket)
            raise

    def try_idle(self, ticket: Ticket) -> Replica | None:
        """A place for a call that only uses what is idle: None under load, or if it has no use."""
        usable = self._usable()
        if self._waiting or self._holding or not usable:
            return None
        replica = self._router.choose(ticket, usable)
        busy = replica.running + 1 > max(1.0, replica.limit.calls / 2)
        if busy or replica.prefixes.known(ticket.chain) == len(ticket.chain):
            return None
        self._place(ticket, replica)
        return replica

    def prefilled(self, ticket: Ticket, replica: Replica) -> None:
        """The call's prompt has been computed; those that share it may go."""
        if self._end_prefill(ticket, replica, computed=True):
            self.dispatch()

    def leave(self, ticket: Ticket, replica: Replica) -> None:
        """The call runs no longer on `replica`."""
        replica.running -= 1
        self._end_prefill(ticket, replica, computed=False)
        self.dispatch()

    def refuse_all(self, error: Callable[[], WeftError]) -> None:
        """Fail all calls that wait, each with an error of its own."""
        tickets = self._waiting + self._holding.take_all()
        self._waiting = []
        for ticket in tickets:
            ticket.stop_timer()
            if not ticket.granted.done():
                ticket.granted.set_exception(error())

    def close(self, error: Callable[[], WeftError]) -> None:
        """Fail all calls that wait, and whoever comes later."""
        self._closed = error
        self.refuse_all(error)

    def dispatch(self) -> None:
        """Start whatever may start, in order. To be called after every change that could help."""
        usable = self._usable()
        while self._waiting and (roomy := [replica for replica in usable if replica.has_room]):
            found = self._next(usable, roomy)
            if found is None:
                return
            ticket, replica = found
            self._unqueue(ticket)
            if not self._holding.holds(ticket, replica):
                self._place(ticket, replica)
                ticket.granted.set_result(replica)

    def _next(
        self, usable: Sequence[Replica], roomy: Sequence[Replica]
    ) -> tuple[Ticket, Replica] | None:
        """The first call that wants a replica with room; else the first call, and such a replica.

        So replicas do not idle while calls wait, nor do calls lose their prefixes whenever all
        replicas are full, and places become free anywhere.
        """
        first: Ticket | None = None
        for ticket in self._waiting[:_LOOKAHEAD]:
            if ticket.granted.done():
                continue  # Cancelled, and about to leave the queue.
            replica = self._router.choose(ticket, usable)
            if replica.has_room:
                return ticket, replica
            first = first or ticket
        return None if first is None else (first, min(roomy, key=lambda replica: replica.load))

    def _usable(self) -> list[Replica]:
        return [replica for replica in self._replicas if replica.usable]

    def _place(self, ticket: Ticket, replica: Replica) -> None:
        ticket.stop_timer()
        replica.running += 1
        replica.sent += 1
        ticket.pending = True
        replica.prefixes.begin(ticket.chain)
        self._router.placed(ticket, replica)

    def _end_prefill(self, ticket: Ticket, replica: Replica, *, computed: bool) -> bool:
        """True when calls that waited for it are in the queue again."""
        if not ticket.pending:
            return False
        ticket.pending = False
        replica.prefixes.end(ticket.chain, computed)
        released = self._holding.waiting_for(replica, ticket.chain)
        for other in released:
            self._queue(other)
        return bool(released)

    def _release(self, ticket: Ticket) -> None:
        if self._holding.remove(ticket):
            self._queue(ticket)
            self.dispatch()

    def _check_length(self, ticket: Ticket, bounded: bool) -> None:
        length = len(self._waiting) + len(self._holding)
        if bounded and length > self._options.max_waiting:
            self._forget(ticket)
            raise ModelOverloaded(
                f"{self._options.max_waiting:,} calls wait already",
                hint="start fewer at a time, add replicas, or raise max_waiting",
            )
        self._stats.most_waiting = max(self._stats.most_waiting, length)

    def _take_back(self, ticket: Ticket) -> None:
        """The caller was cancelled: while it waited, or just as its call was granted or refused."""
        if ticket.granted.cancelled():
            self._forget(ticket)
            self.dispatch()
        elif ticket.granted.exception() is None:
            self.leave(ticket, ticket.granted.result())

    def _forget(self, ticket: Ticket) -> None:
        ticket.stop_timer()
        if not self._holding.remove(ticket):
            self._unqueue(ticket)

    def _queue(self, ticket: Ticket) -> None:
        insort(self._waiting, ticket, key=lambda one: one.rank)

    def _unqueue(self, ticket: Ticket) -> None:
        position = bisect_left(self._waiting, ticket.rank, key=lambda one: one.rank)
        if position < len(self._waiting) and self._waiting[position] is ticket:
            del self._waiting[position]
