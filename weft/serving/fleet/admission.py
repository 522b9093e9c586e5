"""The door to the replicas: calls wait here until one may start, and start in order.

Knows nothing of streams and failures: a call enters, runs somewhere else, and leaves.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from functools import partial

from weft.core.errors import ModelOverloaded, WeftError
from weft.core.ports.clock import Clock
from weft.serving.fleet.options import FleetOptions
from weft.serving.fleet.prefixes import BLOCK_CHARS
from weft.serving.fleet.replica import Replica
from weft.serving.fleet.routing import Router
from weft.serving.fleet.stats import FleetStats
from weft.serving.fleet.ticket import Ticket


class Admission:
    """Grants calls a place on a replica. Whoever enters leaves, whatever happened in between."""

    def __init__(
        self, replicas: Sequence[Replica], options: FleetOptions, clock: Clock, stats: FleetStats
    ) -> None:
        self._replicas = replicas
        self._options = options
        self._clock = clock
        self._stats = stats
        self._router = Router(options)
        self._min_blocks = max(1, options.min_shared_chars // BLOCK_CHARS)
        self._waiting: list[Ticket] = []
        self._closed: Callable[[], WeftError] | None = None

    async def enter(self, ticket: Ticket, bounded: bool = True) -> Replica:
        """Wait until the call may start, and return where. A caller that is cancelled is forgotten.

        Raises: `ModelOverloaded` when it cannot start and `max_waiting` calls wait already
        (`bounded`); what `refuse_all` and `close` are told.
        """
        if self._closed is not None:
            raise self._closed()
        ticket.granted = asyncio.get_running_loop().create_future()
        insort(self._waiting, ticket, key=lambda one: one.rank)
        self.dispatch()
        if not ticket.granted.done():
            if bounded and len(self._waiting) > self._options.max_waiting:
                self._remove(ticket)
                raise ModelOverloaded(
                    f"{self._options.max_waiting:,} calls wait already",
                    hint="start fewer at a time, add replicas, or raise max_waiting",
                )
            self._stats.most_waiting = max(self._stats.most_waiting, len(self._waiting))
        try:
            return await ticket.granted
        except asyncio.CancelledError:
            self._take_back(ticket)
            raise

    def try_idle(self, ticket: Ticket) -> Replica | None:
        """A place for a call that only uses what is idle: None under load, or if it has no use."""
        usable = self._usable()
        if self._waiting or not usable:
            return None
        replica = self._router.choose(ticket, usable)
        busy = replica.running + 1 > max(1.0, replica.limit.calls / 2)
        if busy or replica.prefixes.known(ticket.chain) == len(ticket.chain):
            return None
        self._place(ticket, replica)
        return replica

    def prefilled(self, ticket: Ticket, replica: Replica) -> None:
        """The call's prompt has been computed; those that share it may go."""
        if ticket.pending:
            ticket.pending = False
            replica.prefixes.end(ticket.chain, computed=True)
            self.dispatch()

    def leave(self, ticket: Ticket, replica: Replica) -> None:
        """The call runs no longer on `replica`."""
        replica.running -= 1
        if ticket.pending:
            ticket.pending = False
            replica.prefixes.end(ticket.chain, computed=False)
        self.dispatch()

    def refuse_all(self, error: Callable[[], WeftError]) -> None:
        """Fail all calls that wait, each with an error of its own."""
        tickets, self._waiting = self._waiting, []
        for ticket in tickets:
            _stop_timer(ticket)
            if not ticket.granted.done():
                ticket.granted.set_exception(error())

    def close(self, error: Callable[[], WeftError]) -> None:
        """Fail all calls that wait, and whoever comes later."""
        self._closed = error
        self.refuse_all(error)

    def dispatch(self) -> None:
        """Start whatever may start, in order. To be called after every change that could help."""
        usable = self._usable()
        if not any(replica.has_room for replica in usable):
            return
        kept = []
        for position, ticket in enumerate(self._waiting):
            replica = self._router.choose(ticket, usable)
            if not self._may_start(ticket, replica):
                kept.append(ticket)
                continue
            _stop_timer(ticket)
            self._place(ticket, replica)
            ticket.granted.set_result(replica)
            if not any(replica.has_room for replica in usable):
                kept += self._waiting[position + 1 :]
                break
        self._waiting = kept

    def _usable(self) -> list[Replica]:
        return [replica for replica in self._replicas if replica.usable]

    def _place(self, ticket: Ticket, replica: Replica) -> None:
        replica.running += 1
        replica.sent += 1
        ticket.pending = True
        replica.prefixes.begin(ticket.chain)
        self._router.placed(ticket, replica)

    def _may_start(self, ticket: Ticket, replica: Replica) -> bool:
        given_up = ticket.granted.done()  # Cancelled, and about to leave the queue.
        return replica.has_room and not given_up and not self._must_hold(ticket, replica)

    def _must_hold(self, ticket: Ticket, replica: Replica) -> bool:
        """Whether much of the prompt is being computed by another call at this moment."""
        if not self._options.warm_prefix or ticket.held_enough:
            return False
        prefixes = replica.prefixes
        soon = prefixes.known(ticket.chain) - prefixes.computed(ticket.chain)
        if soon < self._min_blocks:
            return False
        if ticket.timer is None:
            self._stats.held_for_prefix += 1
            ticket.timer = self._clock.call_later(
                self._options.hold_s, partial(self._release, ticket)
            )
        return True

    def _release(self, ticket: Ticket) -> None:
        ticket.held_enough = True
        self.dispatch()

    def _take_back(self, ticket: Ticket) -> None:
        """The caller was cancelled: while it waited, or just as its call was granted or refused."""
        if ticket.granted.cancelled():
            self._remove(ticket)
        elif ticket.granted.exception() is None:
            self.leave(ticket, ticket.granted.result())

    def _remove(self, ticket: Ticket) -> None:
        _stop_timer(ticket)
        position = bisect_left(self._waiting, ticket.rank, key=lambda one: one.rank)
        if position < len(self._waiting) and self._waiting[position] is ticket:
            del self._waiting[position]


def _stop_timer(ticket: Ticket) -> None:
    if ticket.timer is not None:
        ticket.timer.cancel()
        ticket.timer = None
