"""Queue of calls for replicas: ordered, routed by prefix, delayed while a prefix prefills."""

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
    """Calls that wait for a shared prefix, filed under the last block of it.

    The call that computes this block finds its waiters here. `release` receives a ticket that has
    waited for `hold_s`.
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
        self._waiters: dict[tuple[FleetReplica, int], dict[QueuedCall, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def holds(self, ticket: QueuedCall, replica: FleetReplica) -> bool:
        """Whether the call has to wait, as `replica` is computing much of its prompt right now."""
        if not self._options.warm_prefix or ticket.hold_expired:
            return False
        known = replica.prefixes.known(ticket.chain)
        if known - replica.prefixes.computed(ticket.chain) < self._min_blocks:
            return False
        ticket.waits_for = replica, ticket.chain[known - 1]
        self._waiters.setdefault(ticket.waits_for, {})[ticket] = None
        self._count += 1
        if ticket.timer is None:
            self._stats.held_for_prefix += 1
            ticket.timer = self._clock.call_later(self._options.hold_s, partial(self._end, ticket))
        return True

    def remove(self, ticket: QueuedCall) -> bool:
        """Remove `ticket`; false if it does not wait here."""
        if ticket.waits_for is None:
            return False
        others = self._waiters[ticket.waits_for]
        del others[ticket]
        if not others:
            del self._waiters[ticket.waits_for]
        ticket.waits_for = None
        self._count -= 1
        return True

    def waiting_for(self, replica: FleetReplica, chain: Chain) -> list[QueuedCall]:
        """Remove and return the calls that wait for a block of `chain` on `replica`."""
        if not self._waiters:
            return []
        found = [ticket for block in chain for ticket in self._waiters.get((replica, block), ())]
        for ticket in found:
            self.remove(ticket)
        return found

    def take_all(self) -> list[QueuedCall]:
        """Remove and return all calls."""
        found = [ticket for tickets in self._waiters.values() for ticket in tickets]
        for ticket in found:
            self.remove(ticket)
        return found

    def _end(self, ticket: QueuedCall) -> None:
        ticket.hold_expired = True
        self._release(ticket)


_REMEMBERED_GROUPS = 10_000


class ReplicaRouter:
    """Prefers the replica where the call's group began, then the one that caches most of it."""

    def __init__(self, options: FleetOptions) -> None:
        self._options = options
        self._min_blocks = max(1, options.min_shared_chars // BLOCK_CHARS)
        self._homes: OrderedDict[str, FleetReplica] = OrderedDict()

    def choose(self, ticket: QueuedCall, usable: Sequence[FleetReplica]) -> FleetReplica:
        """The best of `usable` for this call, which may be full. `usable` is not empty."""
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
        """Keep the call's group on `replica`, where the call starts."""
        if ticket.group is None or not self._options.affinity:
            return
        home = self._homes.setdefault(ticket.group, replica)
        if home.broken is not None or home.leaving is not None:
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
"""How many waiting calls may decline a free place before the first of them has to take it."""


class FleetAdmission:
    """Grants calls places on replicas. Every call that enters also leaves, even when cancelled."""

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
        self._prefix_waiters = PrefixWaiters(options, clock, stats, self._release)
        self._closed: Callable[[], WeftError] | None = None

    @property
    def waiting(self) -> int:
        """How many calls wait for a replica."""
        return len(self._waiting)

    async def enter(self, ticket: QueuedCall, bounded: bool = True) -> FleetReplica:
        """Wait until the call may start, and return its replica. Cancelling removes the call.

        Raises: `ModelOverloaded` when the call cannot start and is `bounded`, and `max_waiting`
        calls already wait; the error given to `refuse_all` or `close`.
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
        """A replica with idle capacity; None under load or if the whole prompt is cached."""
        usable = self._usable()
        if self._waiting or self._prefix_waiters or not usable:
            return None
        replica = self._router.choose(ticket, usable)
        busy = replica.running + 1 > max(1.0, replica.limit.calls / 2)
        if busy or replica.prefixes.known(ticket.chain) == len(ticket.chain):
            return None
        self._place(ticket, replica)
        return replica

    def prefilled(self, ticket: QueuedCall, replica: FleetReplica) -> None:
        """The call's prompt is computed: release the calls that share it."""
        if self._end_prefill(ticket, replica, computed=True):
            self.dispatch()

    def leave(self, ticket: QueuedCall, replica: FleetReplica) -> None:
        """The call no longer runs on `replica`."""
        replica.running -= 1
        if replica.leaving is not None and not replica.running:
            replica.leaving.set()
        self._end_prefill(ticket, replica, computed=False)
        self.dispatch()

    def refuse_all(self, error: Callable[[], WeftError]) -> None:
        """Fail all waiting calls, each with an error of its own."""
        tickets = self._waiting + self._prefix_waiters.take_all()
        self._waiting = []
        for ticket in tickets:
            ticket.stop_timer()
            if not ticket.granted.done():
                ticket.granted.set_exception(error())

    def close(self, error: Callable[[], WeftError]) -> None:
        """Fail all waiting calls and all later ones."""
        self._closed = error
        self.refuse_all(error)

    def dispatch(self) -> None:
        """Start the calls that may start, in order. To be called after every change in capacity."""
        usable = self._usable()
        while self._waiting and (roomy := [replica for replica in usable if replica.has_room]):
            found = self._next(usable, roomy)
            if found is None:
                return
            ticket, replica = found
            self._unqueue(ticket)
            if not self._prefix_waiters.holds(ticket, replica):
                self._place(ticket, replica)
                ticket.granted.set_result(replica)

    def _next(
        self, usable: Sequence[FleetReplica], roomy: Sequence[FleetReplica]
    ) -> tuple[QueuedCall, FleetReplica] | None:
        """The first call whose preferred replica has room; else the first call, on any with room.

        Replicas do not idle while calls wait. And calls keep their prefixes when all replicas are
        full and places become free anywhere.
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
        """True if this put waiting calls back into the queue."""
        if not ticket.pending:
            return False
        ticket.pending = False
        replica.prefixes.end(ticket.chain, computed)
        released = self._prefix_waiters.waiting_for(replica, ticket.chain)
        for other in released:
            self._queue(other)
        return bool(released)

    def _release(self, ticket: QueuedCall) -> None:
        if self._prefix_waiters.remove(ticket):
            self._queue(ticket)
            self.dispatch()

    def _check_length(self, ticket: QueuedCall, bounded: bool) -> None:
        length = len(self._waiting) + len(self._prefix_waiters)
        if bounded and length > self._options.max_waiting:
            self._forget(ticket)
            raise ModelOverloaded(
                f"{self._options.max_waiting:,} calls wait already",
                hint="start fewer at a time, add replicas, or raise max_waiting",
            )
        self._stats.most_waiting = max(self._stats.most_waiting, length)

    def _take_back(self, ticket: QueuedCall) -> None:
        """Undo `enter` for a caller cancelled while waiting, or just as its call was settled."""
        if ticket.granted.cancelled():
            self._forget(ticket)
            self.dispatch()
        elif ticket.granted.exception() is None:
            self.leave(ticket, ticket.granted.result())

    def _forget(self, ticket: QueuedCall) -> None:
        ticket.stop_timer()
        if not self._prefix_waiters.remove(ticket):
            self._unqueue(ticket)

    def _queue(self, ticket: QueuedCall) -> None:
        insort(self._waiting, ticket, key=lambda one: one.rank)

    def _unqueue(self, ticket: QueuedCall) -> None:
        position = bisect_left(self._waiting, ticket.rank, key=lambda one: one.rank)
        if position < len(self._waiting) and self._waiting[position] is ticket:
            del self._waiting[position]
