"""One call in the fleet's queue: what is needed to decide when and where it runs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.core.ports.clock import Timer
from weft.core.ports.model import ModelRequest
from weft.serving.fleet.order import Rank
from weft.serving.fleet.prefixes import Chain

if TYPE_CHECKING:
    from weft.serving.fleet.replica import Replica


@dataclass(eq=False, slots=True)
class Ticket:
    """A call that waits or runs. `group` names the calls that belong on one replica.

    granted      set to the replica once the call may start
    held         where and for which block of its prompt it waits, while it does
    timer        runs from the first of such waits to the start, and ends in `held_enough`
    pending      it runs, and its own prompt is still to be computed
    """

    rank: Rank
    chain: Chain
    group: str | None
    granted: asyncio.Future[Replica] = field(init=False)
    held: tuple[Replica, int] | None = None
    timer: Timer | None = None
    held_enough: bool = False
    pending: bool = False

    def stop_timer(self) -> None:
        """It waits no longer."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def group_of(request: ModelRequest) -> str | None:
    """What keeps calls together: a prefix that was named, else the program."""
    if request.cache_prefix is not None:
        return f"prefix:{request.cache_prefix}"
    return f"program:{request.program.id}" if request.program is not None else None
