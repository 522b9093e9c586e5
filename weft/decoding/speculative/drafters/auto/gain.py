"""What a draft gains: tokens over time of a step, what trying costs, what steps really take.

Goodput (TurboSpec, arXiv 2406.14066), of a whole step and level by level of trees.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

from weft.core.ports.clock import Clock
from weft.decoding.speculative.draft import DraftTree
from weft.decoding.speculative.drafters.auto.history import AcceptanceRates

RelativeCost = Callable[[int], float]
"""What a pass over so many tokens takes, in passes over one."""


@dataclass(frozen=True, slots=True)
class ExpectedGain:
    """A draft level by level: what each is expected to add in tokens, and how many nodes it has.

    `cost` is what making a level takes, in passes.
    """

    gains: tuple[float, ...] = ()
    nodes: tuple[int, ...] = ()
    cost: float = 0.0

    @classmethod
    def of(cls, tree: DraftTree, chances: AcceptanceRates) -> ExpectedGain:
        """A tree that is there already, its levels as likely as `chances` say."""
        levels = np.bincount(tree.depths)[1 : chances.depths + 1]
        return cls(tuple(chances.reached(len(levels))), tuple(int(count) for count in levels))

    def best(self, rows: int, cost: RelativeCost) -> tuple[float, int]:
        """Tokens over time when one of `rows` sequences drafts and the others do not: at the best
        depth, and which that is.
        """
        tokens, size = float(rows), rows
        found = (tokens / cost(size), 0)
        for depth, (gain, nodes) in enumerate(zip(self.gains, self.nodes, strict=True), 1):
            tokens += gain
            size += nodes
            found = max(found, (tokens / (cost(size) + self.cost * depth), depth))
        return found


NO_GAIN = ExpectedGain()


def share_out(offers: Sequence[ExpectedGain], cost: RelativeCost, margin: float) -> list[int]:
    """How deep each of the sequences of a step drafts, so that most tokens come in the time.

    Levels are added in the order of what they gain for a node. What does not beat the step without
    drafts by the factor `margin` is left: times are measured, and chances estimated.
    """
    waiting = [(_density(offer, 0), row, 0) for row, offer in enumerate(offers) if offer.gains]
    heapq.heapify(waiting)
    tokens, size = float(len(offers)), len(offers)
    best, kept = margin * tokens / cost(size), 0
    taken: list[int] = []
    while waiting:
        _, row, level = heapq.heappop(waiting)
        offer = offers[row]
        tokens += offer.gains[level]
        size += offer.nodes[level]
        taken.append(row)
        if tokens / cost(size) > best:
            best, kept = tokens / cost(size), len(taken)
        if level + 1 < len(offer.gains):
            heapq.heappush(waiting, (_density(offer, level + 1), row, level + 1))
    return [taken[:kept].count(row) for row in range(len(offers))]


def _density(offer: ExpectedGain, level: int) -> float:
    """Less is better."""
    return -offer.gains[level] / offer.nodes[level]


_MOST_SAVED: Final = 20.0


class ExplorationBudget:
    """When a drafter that has to be paid for may be tried out: the optimism of upper confidence
    bounds (Auer et al., 2002) under a budget.

    `share` of all time, counted in passes of the target, may be spent on drafts that do not pay.

    Begins with nothing, so the share holds from the first step on.
    """

    def __init__(self, share: float = 0.01) -> None:
        self._share = share
        self._saved = 0.0
        self._steps = 0

    def passed(self, passes: float = 1.0) -> None:
        """A step of one sequence that took about so long."""
        self._steps += 1
        self._saved = min(self._saved + self._share * passes, _MOST_SAVED)

    def bonus(self, tested: float) -> float:
        """How much better than its mean the chance of a drafter may be, after so many tests."""
        return math.sqrt(math.log(1.0 + self._steps) / (2.0 * (tested + 1.0)))

    def affords(self, passes: float) -> bool:
        """Whether that can be spent now."""
        return passes <= self._saved

    def spend(self, passes: float) -> None:
        """What a trial has taken, be it more than was thought: the next comes later then."""
        self._saved -= passes


_LAST: Final = 32
_ENOUGH: Final = 6
_LEAST: Final = 0.5
_MOST: Final = 8.0
_PLAIN_OF: Final = 8


class StepTimes:
    """Compares steps that read drafts with steps of as many rows that read none.

    Medians, because other things happen between two proposals now and then: a prompt is read, or
    nobody asks for anything.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: tuple[float, int, float] | None = None
        self._plain: dict[int, deque[float]] = defaultdict(lambda: deque(maxlen=_LAST))
        self._drafted: dict[int, int] = defaultdict(int)
        self._drafting: dict[int, deque[tuple[float, float]]] = defaultdict(
            lambda: deque(maxlen=_LAST)
        )

    def proposed(self, rows: int, expected: float) -> None:
        """Drafts were proposed: the step is expected to take so many plain ones of its rows."""
        self._since = (self._clock.now(), rows, expected)

    def begins(self, rows: int) -> None:
        """The next proposal is asked for: the step of the last one is over."""
        if self._since is None or self._since[1] != rows:
            return
        begun, _, expected = self._since
        seconds = self._clock.now() - begun
        if expected > 1.0:
            self._drafting[rows].append((seconds, expected))
            self._drafted[rows] += 1
        else:
            self._plain[rows].append(seconds)

    def lacks(self, rows: int) -> bool:
        """Whether a step without drafts is due, because too few were seen to compare with.

        One of eight steps, and only until there are enough.
        """
        few = len(self._plain[rows])
        return few < _ENOUGH and self._drafted[rows] >= _PLAIN_OF * (few + 1)

    def steepness(self, rows: int) -> float:
        """How much dearer drafts are than was thought, as a factor; 1 until that is known."""
        plain, drafting = self._plain[rows], self._drafting[rows]
        if len(plain) < _ENOUGH or len(drafting) < _ENOUGH:
            return 1.0
        one = median(plain)
        if one <= 0.0:
            return 1.0
        found = median((seconds / one - 1.0) / (over - 1.0) for seconds, over in drafting)
        return min(max(found, _LEAST), _MOST)
