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

    `granted` is set to the replica once the call may start. `timer` runs while the call waits for
    another's prefill, and ends in `held_enough`. `pending`: its own prefill is still to come.
    """

    rank: Rank
    chain: Chain
    group: str | None
    granted: asyncio.Future[Replica] = field(init=False)
    timer: Timer | None = None
    held_enough: bool = False
    pending: bool = False


def group_of(request: ModelRequest) -> str | None:
    """What keeps calls together: a prefix that was named, else the program."""
    if request.cache_prefix is not None:
        return f"prefix:{request.cache_prefix}"
    return f"program:{request.program.id}" if request.program is not None else None
