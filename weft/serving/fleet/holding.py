"""Calls that wait until another call has computed the prefix they share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from weft.core.ports.clock import Clock
from weft.serving.fleet.options import FleetOptions
from weft.serving.fleet.prefixes import BLOCK_CHARS, Chain
from weft.serving.fleet.replica import Replica
from weft.serving.fleet.stats import FleetStats
from weft.serving.fleet.ticket import Ticket


class Holding:
    """Filed under the last shared block, so that whoever computes it finds those who wait for it.

    `release` is called with a ticket that has waited for `hold_s`.
    """

    def __init__(
        self,
        options: FleetOptions,
        clock: Clock,
        stats: FleetStats,
        release: Callable[[Ticket], None],
    ) -> None:
        self._options = options
        self._clock = clock
        self._stats = stats
        self._release = release
        self._min_blocks = max(1, options.min_shared_chars // BLOCK_CHARS)
        self._held: dict[tuple[Replica, int], dict[Ticket, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def holds(self, ticket: Ticket, replica: Replica) -> bool:
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

    def remove(self, ticket: Ticket) -> bool:
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

    def waiting_for(self, replica: Replica, chain: Chain) -> list[Ticket]:
        """Take out those that wait for a block of `chain` on `replica`."""
        if not self._held:
            return []
        found = [ticket for block in chain for ticket in self._held.get((replica, block), ())]
        for ticket in found:
            self.remove(ticket)
        return found

    def take_all(self) -> list[Ticket]:
        """Take everybody out."""
        found = [ticket for tickets in self._held.values() for ticket in tickets]
        for ticket in found:
            self.remove(ticket)
        return found

    def _end(self, ticket: Ticket) -> None:
        ticket.held_enough = True
        self._release(ticket)
