"""A map over many machines, in virtual time: one process schedules and records, machines work.

A queueing model: items wait for a slot of a machine; the scheduling process takes all that have
ended, records them, starts the next ones, and does nothing else meanwhile; values too large for a
message pass through one content store, in the order in which they come.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import ceil, inf
from typing import Final, Literal, NamedTuple

from weft.core.errors import InputError
from weft.durability.simulate.cluster_costs import ClusterCosts, StepCost, measured_costs

Resource = Literal["slots", "process", "scheduler", "journal", "messages", "store"]
BATCH: Final = 256
"""Items that travel to a machine in one message, at most."""
MOST_ITEMS: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class ClusterPrediction:
    """What a map over a cluster would take.

    `ideal_s`: without any cost but the items' own time. `busy`: for each resource the share of the
    run in which it works. `capacity`: the items a second that each could do if the others took no
    time, with steps and messages as full as they were; `process` is the scheduler, its journal and
    its messages, one after the other.
    `memory_bytes`: of the scheduling process; `journal_bytes`: on the disk.
    """

    items: int
    slots: int
    wall_s: float
    ideal_s: float
    steps: int
    busy: Mapping[Resource, float]
    capacity: Mapping[Resource, float]
    memory_bytes: float
    journal_bytes: float

    @property
    def efficiency(self) -> float:
        """The share of all slots' time in which an item ran."""
        return self.busy["slots"]

    @property
    def limit(self) -> Resource:
        """What works all the time, or most of it: `slots`, `process` or `store`."""
        alone: tuple[Resource, ...] = ("slots", "process", "store")
        return max(alone, key=lambda name: self.busy.get(name, 0.0))


def simulate_cluster(
    *,
    nodes: int,
    items: int,
    seconds: float,
    slots: int = 8,
    result_bytes: int = 0,
    spread: float = 0.2,
    costs: ClusterCosts | None = None,
    seed: int = 0,
) -> ClusterPrediction:
    """Simulate a map over `items` on `nodes` machines with `slots` each.

    An item takes `seconds`, give or take `spread` of it (a share, drawn evenly with `seed`), and
    its result has `result_bytes`. `costs`: by default those of a journal in a file.
    Raises: `InputError` for what cannot be simulated.
    """
    if min(nodes, slots) < 1:
        raise InputError("a cluster has at least one machine, with at least one slot")
    if not 1 <= items <= MOST_ITEMS:
        raise InputError(f"{items:,} items: between 1 and {MOST_ITEMS:,} can be simulated")
    if not 0 < seconds < inf:
        raise InputError(f"an item takes more than 0 seconds, not {seconds:g}")
    if not 0 <= spread <= 1:
        raise InputError(f"the spread of an item's time is a share from 0 to 1, not {spread:g}")
    if result_bytes < 0:
        raise InputError(f"a result has 0 bytes or more, not {result_bytes}")
    drawn = _Items(items, seconds, spread, result_bytes, random.Random(seed))  # noqa: S311
    return _MapSimulator(drawn, costs or measured_costs(), nodes, slots).run()


class _Items(NamedTuple):
    number: int
    seconds: float
    spread: float
    result_bytes: int
    random: random.Random

    def took_s(self) -> float:
        return self.seconds * (1 + self.spread * self.random.uniform(-1, 1))


class _MapSimulator:
    """The state of one simulation. `_due`: when items leave a machine, or reach the scheduler."""

    def __init__(self, items: _Items, costs: ClusterCosts, nodes: int, slots: int) -> None:
        self._items = items
        self._costs = costs
        self._nodes = nodes
        self._slots = slots
        self._store_s = 0.0  # for one result
        if items.result_bytes > costs.inline_bytes:
            self._store_s = costs.store_s + items.result_bytes / costs.store_bytes_s
        self._store_free_s = 0.0
        self._due: list[tuple[float, int, bool]] = []
        self._order = count()
        self._worked_s: dict[Resource, float] = defaultdict(float)

    def run(self) -> ClusterPrediction:
        """Run it to the end."""
        items = self._items.number
        left, free, done, steps, now_s = items, self._nodes * self._slots, 0, 0, 0.0
        while done < items:
            ended = 0
            if steps:
                now_s, ended = self._ended(now_s)
            done, free = done + ended, free + ended
            begun = min(left, free)
            left, free = left - begun, free - begun
            now_s += self._step_s(ended, begun)
            self._begin(now_s, begun)
            steps += 1
        return self._prediction(now_s, steps)

    def _ended(self, now_s: float) -> tuple[float, int]:
        """When the next step begins, and the items that have reached the scheduler by then."""
        ended = 0
        while self._due and (self._due[0][0] <= now_s or not ended):
            at_s, _, reached = heappop(self._due)
            if reached:
                now_s, ended = max(now_s, at_s), ended + 1
            else:
                self._store_free_s = max(self._store_free_s, at_s) + self._store_s
                self._worked_s["store"] += self._store_s
                heappush(self._due, (self._store_free_s, next(self._order), True))
        return now_s, ended

    def _step_s(self, ended: int, begun: int) -> float:
        messages = max(ceil(begun / BATCH), min(begun, self._nodes))
        parts: tuple[tuple[Resource, StepCost, int, int], ...] = (
            ("scheduler", self._costs.scheduler, 1, ended),
            ("journal", self._costs.journal, 1, ended),
            ("messages", self._costs.message, messages, begun),
        )
        took_s = 0.0
        for name, cost, steps, nodes in parts:
            part_s = steps * cost.step_s + nodes * cost.node_s
            self._worked_s[name] += part_s
            took_s += part_s
        self._worked_s["process"] += took_s
        return took_s

    def _begin(self, now_s: float, items: int) -> None:
        for _ in range(items):
            took_s = self._items.took_s()
            self._worked_s["slots"] += took_s
            at_s = now_s + self._costs.trip_s + took_s
            heappush(self._due, (at_s, next(self._order), not self._store_s))

    def _prediction(self, wall_s: float, steps: int) -> ClusterPrediction:
        items, slots = self._items.number, self._nodes * self._slots
        worked_s = {**self._worked_s, "slots": self._worked_s["slots"] / slots}
        return ClusterPrediction(
            items,
            slots,
            wall_s,
            ideal_s=worked_s["slots"],
            steps=steps,
            busy={name: seconds / wall_s for name, seconds in worked_s.items()},
            capacity={name: items / s for name, s in worked_s.items() if s > 0},
            memory_bytes=items * self._costs.node_bytes,
            journal_bytes=items * self._costs.record_bytes,
        )
