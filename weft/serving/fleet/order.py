"""Which call goes first: the one whose program is nearest to its end, and waiting counts too."""

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
_WARM_DELAY_S = 3600.0  # Later than any call that came within the hour.


@dataclass(frozen=True, slots=True, order=True)
class Rank:
    """The place of a call in the order, the smallest first.

    `moment_s` is when it would have come if all programs were of one length, `gap` how much longer
    the program's longest way is than the call's, in weights, `number` counts calls.
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

    Programs share a server, so that what counts between them is how much they still want of it: the
    work, or the critical path where the work is unknown. The shortest first gives the least mean
    latency, and starves long programs. Ageing
    mends that: the place of a waiting program improves by one for every second. As all that wait
    age alike, their order never changes while they wait, so a number that is fixed on arrival will
    do: when the program arrived plus `patience` times the seconds that are left of it.

    A call without a program counts as a program of one call, moved ahead by one unit of weight for
    each step of its priority.
    """

    def __init__(self, options: FleetOptions, epoch_s: float) -> None:
        """`epoch_s` is where moments count from, on the clock that tells arrivals."""
        self._options = options
        self._epoch_s = epoch_s
        self._seconds = options.patience * options.seconds_per_weight
        self._since: OrderedDict[str, float] = OrderedDict()
        self._count = 0

    def rank(self, request: ModelRequest, now_s: float, warm: bool = False) -> Rank:
        """The place of `request`, which arrives at `now_s`; `warm` calls come after all others."""
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
        """When the program was first seen; those seen longest ago are forgotten."""
        since = self._since.setdefault(program, now_s)
        self._since.move_to_end(program)
        if len(self._since) > _REMEMBERED_PROGRAMS:
            self._since.popitem(last=False)
        return since


@dataclass(eq=False, slots=True)
class QueuedCall:
    """A call that waits or runs. `group` names the calls that belong on one replica.

    granted      set to the replica once the call may start
    held         where and for which block of its prompt it waits, while it does
    timer        runs from the first of such waits to the start, and ends in `held_enough`
    pending      it runs, and its own prompt is still to be computed
    """

    rank: Rank
    chain: Chain
    group: str | None
    granted: asyncio.Future[FleetReplica] = field(init=False)
    held: tuple[FleetReplica, int] | None = None
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
