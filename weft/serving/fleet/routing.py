"""Which replica a call should run on: where its prefix is, unless that one is much busier.

Decides only; whether the chosen replica has room, and whether to wait, is `admission`'s part.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from weft.serving.fleet.options import FleetOptions
from weft.serving.fleet.prefixes import BLOCK_CHARS
from weft.serving.fleet.replica import Replica
from weft.serving.fleet.ticket import Ticket

_REMEMBERED_GROUPS = 10_000


class Router:
    """Prefers the replica where the call's group began, then the one with most of its prompt."""

    def __init__(self, options: FleetOptions) -> None:
        self._options = options
        self._min_blocks = max(1, options.min_shared_chars // BLOCK_CHARS)
        self._homes: OrderedDict[str, Replica] = OrderedDict()

    def choose(self, ticket: Ticket, usable: Sequence[Replica]) -> Replica:
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

    def placed(self, ticket: Ticket, replica: Replica) -> None:
        """The call starts on `replica`: its group stays there."""
        if ticket.group is None or not self._options.affinity:
            return
        home = self._homes.setdefault(ticket.group, replica)
        if home.broken is not None:
            self._homes[ticket.group] = replica
        self._homes.move_to_end(ticket.group)
        if len(self._homes) > _REMEMBERED_GROUPS:
            self._homes.popitem(last=False)

    def _warmest(self, ticket: Ticket, usable: Sequence[Replica]) -> Replica | None:
        shared = [(replica.prefixes.known(ticket.chain), replica) for replica in usable]
        longest = max(blocks for blocks, _ in shared)
        if longest < self._min_blocks:
            return None
        equal = [replica for blocks, replica in shared if blocks == longest]
        return min(equal, key=lambda replica: replica.load)
