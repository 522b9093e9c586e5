"""Calls wait here for a replica: in order, routed to where their prefix is, held while a sibling
computes the prefix that they share."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial

from weft.core.errors import ModelOverloaded, WeftError
from weft.core.ports.clock import Clock
from weft.serving.fleet.options import FleetOptions
from weft.serving.fleet.order import QueuedCall
from weft.serving.fleet.replica import BLOCK_CHARS, Chain, FleetReplica
from weft.serving.fleet.stats import FleetStats


class PrefixWaiters:
    """Filed under the last shared block: the call that computes it finds those that wait for it.

    `release` is called with a ticket that has waited for `hold_s`.
    """

    def __init__(
        self,
        options: FleetOptions,
        clock: Clock,
        stats: FleetStats,
        release: Callable[[QueuedCall], None],
    ) -> None:
        self._options = options
        self._clock = clock
        self._stats = stats
        self._release = release
        self._min_blocks = max(1, options.min_shared_chars // BLOCK_CHARS)
        self._held: dict[tuple[FleetReplica, int], dict[QueuedCall, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def holds(self, ticket: QueuedCall, replica: FleetReplica) -> bool:
        """Whether the call is to wait here, as much of its prompt is just being computed there."""
        if not self._options.warm_prefix or ticket.held_enough:
            return False
        known = replica.prefixes.known(ticket.chain)
        if known - replica.prefixes.computed(ticket.chain) < self._min_blocks:
            return False
        ticket.held = replica, ticket.chain[known - 1]
        self._held.setdefault(ticket.held, {})[ticket] = None
        self._count += 1
        if ticket.timer is None:
            self._stats.held_for_prefix += 1
            ticket.timer = self._clock.call_later(self._options.hold_s, partial(self._end, ticket))
        return True

    def remove(self, ticket: QueuedCall) -> bool:
        """Forget `ticket`; false if it does not wait here."""
        if ticket.held is None:
            return False
        others = self._held[ticket.held]
        del others[ticket]
        if not others:
            del self._held[ticket.held]
        ticket.held = None
        self._count -= 1
        return True

    def waiting_for(self, replica: FleetReplica, chain: Chain) -> list[QueuedCall]:
        """Take out those that wait for a block of `chain` on `replica`."""
        if not self._held:
            return []
        found = [ticket for block in chain for ticket in self._held.get((replica, block), ())]
        for ticket in found:
            self.remove(ticket)
        return found

    def take_all(self) -> list[QueuedCall]:
        """Take all out."""
        found = [ticket for tickets in self._held.values() for ticket in tickets]
        for ticket in found:
            self.remove(ticket)
        return found

    def _end(self, ticket: QueuedCall) -> None:
        ticket.held_enough = True
        self._release(ticket)


_REMEMBERED_GROUPS = 10_000


class ReplicaRouter:
    """Prefers the replica where the call's group began, then the one with most of its prompt."""

    def __init__(self, options: FleetOptions) -> None:
        self._options = options
        self._min_blocks = max(1, options.min_shared_chars // BLOCK_CHARS)
        self._homes: OrderedDict[str, FleetReplica] = OrderedDict()

    def choose(self, ticket: QueuedCall, usable: Sequence[FleetReplica]) -> FleetReplica:
        """The best of `usable`, which is not empty, for this call. It may have no room now."""
        idlest = min(usable, key=lambda replica: replica.load)
        if not self._options.affinity:
            return idlest
        home = self._homes.get(ticket.group) if ticket.group is not None else None
        if home not in usable:
            home = self._warmest(ticket, usable)
        if home is None or home.running - idlest.running > self._options.slack:
            return idlest
        return home

    def placed(self, ticket: QueuedCall, replica: FleetReplica) -> None:
        """The call starts on `replica`: its group stays there."""
        if ticket.group is None or not self._options.affinity:
            return
        home = self._homes.setdefault(ticket.group, replica)
        if home.broken is not None:
            self._homes[ticket.group] = replica
        self._homes.move_to_end(ticket.group)
        if len(self._homes) > _REMEMBERED_GROUPS:
            self._homes.popitem(last=False)

    def _warmest(self, ticket: QueuedCall, usable: Sequence[FleetReplica]) -> FleetReplica | None:
        shared = [(replica.prefixes.known(ticket.chain), replica) for replica in usable]
        longest = max(blocks for blocks, _ in shared)
        if longest < self._min_blocks:
            return None
        equal = [replica for blocks, replica in shared if blocks == longest]
        return min(equal, key=lambda replica: replica.load)


_LOOKAHEAD = 32
"""How many calls are asked whether they want a free place before the first of them must take it."""


class FleetAdmission:
    """Grants calls a place on a replica. What enters leaves, whatever happened in between."""

    def __init__(
        self,
        replicas: Sequence[FleetReplica],
        options: FleetOptions,
        clock: Clock,
        stats: FleetStats,
    ) -> None:
        self._replicas = replicas
        self._options = options
        self._stats = stats
        self._router = ReplicaRouter(options)
        self._waiting: list[QueuedCall] = []
        self._holding = PrefixWaiters(options, clock, stats, self._release)
        self._closed: Callable[[], WeftError] | None = None

    @property
    def waiting(self) -> int:
        """How many calls wait for a replica."""
        return len(self._waiting)

    async def enter(self, ticket: QueuedCall, bounded: bool = True) -> FleetReplica:
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

    def try_idle(self, ticket: QueuedCall) -> FleetReplica | None:
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

    def prefilled(self, ticket: QueuedCall, replica: FleetReplica) -> None:
        """The call's prompt has been computed; those that share it may go."""
        if self._end_prefill(ticket, replica, computed=True):
            self.dispatch()

    def leave(self, ticket: QueuedCall, replica: FleetReplica) -> None:
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
        """Fail all calls that wait, and those that come later."""
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
        self, usable: Sequence[FleetReplica], roomy: Sequence[FleetReplica]
    ) -> tuple[QueuedCall, FleetReplica] | None:
        """The first call that wants a replica with room; else the first call, and such a replica.

        So replicas do not idle while calls wait, nor do calls lose their prefixes whenever all
        replicas are full, and places become free anywhere.
        """
        first: QueuedCall | None = None
        for ticket in self._waiting[:_LOOKAHEAD]:
            if ticket.granted.done():
                continue  # Cancelled, and about to leave the queue.
            replica = self._router.choose(ticket, usable)
            if replica.has_room:
                return ticket, replica
            first = first or ticket
        return None if first is None else (first, min(roomy, key=lambda replica: replica.load))

    def _usable(self) -> list[FleetReplica]:
        return [replica for replica in self._replicas if replica.usable]

    def _place(self, ticket: QueuedCall, replica: FleetReplica) -> None:
        ticket.stop_timer()
        replica.running += 1
        replica.sent += 1
        ticket.pending = True
        replica.prefixes.begin(ticket.chain)
        self._router.placed(ticket, replica)

    def _end_prefill(self, ticket: QueuedCall, replica: FleetReplica, *, computed: bool) -> bool:
        """True when calls that waited for it are in the queue again."""
        if not ticket.pending:
            return False
        ticket.pending = False
        replica.prefixes.end(ticket.chain, computed)
        released = self._holding.waiting_for(replica, ticket.chain)
        for other in released:
            self._queue(other)
        return bool(released)

    def _release(self, ticket: QueuedCall) -> None:
        if self._holding.remove(ticket):
            self._queue(ticket)
            self.dispatch()

    def _check_length(self, ticket: QueuedCall, bounded: bool) -> None:
        length = len(self._waiting) + len(self._holding)
        if bounded and length > self._options.max_waiting:
            self._forget(ticket)
            raise ModelOverloaded(
                f"{self._options.max_waiting:,} calls wait already",
                hint="start fewer at a time, add replicas, or raise max_waiting",
            )
        self._stats.most_waiting = max(self._stats.most_waiting, length)

    def _take_back(self, ticket: QueuedCall) -> None:
        """The caller was cancelled: while it waited, or just as its call was granted or refused."""
        if ticket.granted.cancelled():
            self._forget(ticket)
            self.dispatch()
        elif ticket.granted.exception() is None:
            self.leave(ticket, ticket.granted.result())

    def _forget(self, ticket: QueuedCall) -> None:
        ticket.stop_timer()
        if not self._holding.remove(ticket):
            self._unqueue(ticket)

    def _queue(self, ticket: QueuedCall) -> None:
        insort(self._waiting, ticket, key=lambda one: one.rank)

    def _unqueue(self, ticket: QueuedCall) -> None:
        position = bisect_left(self._waiting, ticket.rank, key=lambda one: one.rank)
        if position < len(self._waiting) and self._waiting[position] is ticket:
            del self._waiting[position]
