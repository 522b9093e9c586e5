"""Order of calls: the program nearest to its end first, with ageing."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.core.ports.clock import Timer
from weft.core.ports.model import ModelRequest
from weft.serving.fleet.options import FleetOptions
from weft.serving.fleet.replica import Chain

if TYPE_CHECKING:
    from weft.serving.fleet.replica import FleetReplica


_REMEMBERED_PROGRAMS = 10_000
_WARM_DELAY_S = 3600.0  # Ranks after every call of the next hour.


@dataclass(frozen=True, slots=True, order=True)
class Rank:
    """The place of a call in the order, the smallest first.

    moment_s  when the call would have come if all programs were of one length
    gap       how much longer the program's longest path is than the call's, in weights
    number    counts calls
    """

    moment_s: float
    gap: float
    number: int

    @property
    def urgency(self) -> int:
        """The rank as a request's `priority`: larger is more urgent, in milliseconds."""
        return -round(self.moment_s * 1000 + self.gap)


class ProgramOrder:
    """Shortest remaining work first, aged; within a program the longest path first.

    Programs share a server, so what counts between them is their remaining demand: the work, or the
    critical path where the work is unknown. Shortest first gives the least mean latency, but
    starves long programs. Ageing prevents that: a waiting program moves ahead by one second per
    second. All waiting programs age alike, so their order never changes, and a number fixed on
    arrival suffices: the program's arrival plus `patience` times its remaining seconds.

    A call without a program counts as a program of one call, moved ahead by one unit of weight per
    unit of its priority.
    """

    def __init__(self, options: FleetOptions, epoch_s: float) -> None:
        """`epoch_s` is the origin of moments, on the clock of arrivals."""
        self._options = options
        self._epoch_s = epoch_s
        self._seconds = options.patience * options.seconds_per_weight
        self._since: OrderedDict[str, float] = OrderedDict()
        self._count = 0

    def rank(self, request: ModelRequest, now_s: float, warm: bool = False) -> Rank:
        """The rank of `request`, which arrives at `now_s`; `warm` calls rank after all others."""
        self._count += 1
        now_s -= self._epoch_s
        if warm:
            return Rank(now_s + _WARM_DELAY_S, 0.0, self._count)
        if self._options.order == "arrival":
            return Rank(0.0, 0.0, self._count)
        program = request.program
        if program is None:
            return Rank(now_s + (1 - request.priority) * self._seconds, 0.0, self._count)
        left = program.remaining if program.work is None else program.work
        moment_s = self._arrival(program.id, now_s) + left * self._seconds
        return Rank(moment_s, program.remaining - program.path, self._count)

    def _arrival(self, program: str, now_s: float) -> float:
        """When the program's first call arrived. Forgets the programs used longest ago."""
        since = self._since.setdefault(program, now_s)
        self._since.move_to_end(program)
        if len(self._since) > _REMEMBERED_PROGRAMS:
            self._since.popitem(last=False)
        return since


@dataclass(eq=False, slots=True)
class QueuedCall:
    """A call that waits or runs. `group` names the calls that belong on one replica.

    granted       set to the replica once the call may start
    waits_for     the replica and the block of its prompt that it waits for, if any
    timer         runs from the first such wait to the start, and then sets `hold_expired`
    pending       the call runs, and its own prompt is still to be computed
    """

    rank: Rank
    chain: Chain
    group: str | None
    granted: asyncio.Future[FleetReplica] = field(init=False)
    waits_for: tuple[FleetReplica, int] | None = None
    timer: Timer | None = None
    hold_expired: bool = False
    pending: bool = False

    def stop_timer(self) -> None:
        """The call waits no longer."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def group_of(request: ModelRequest) -> str | None:
    """The group of a request: its named prefix, else its program."""
    if request.cache_prefix is not None:
        return f"prefix:{request.cache_prefix}"
    return f"program:{request.program.id}" if request.program is not None else None
