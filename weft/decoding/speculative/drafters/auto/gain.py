"""The gain of a draft, the budget for exploration, and the measured time of steps.

Goodput (TurboSpec, arXiv 2406.14066), of whole steps and level by level of trees.
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
"""The cost of a pass over so many tokens, in passes over one."""


@dataclass(frozen=True, slots=True)
class ExpectedGain:
    """The expected gain of a draft by level: tokens, nodes, and `cost` of making it, in passes."""

    gains: tuple[float, ...] = ()
    nodes: tuple[int, ...] = ()
    cost: float = 0.0

    @classmethod
    def of(cls, tree: DraftTree, chances: AcceptanceRates) -> ExpectedGain:
        """Of a finished draft, with levels as likely as `chances` say."""
        levels = np.bincount(tree.depths)[1 : chances.depths + 1]
        return cls(tuple(chances.reached(len(levels))), tuple(int(count) for count in levels))

    def best(self, rows: int, cost: RelativeCost) -> tuple[float, int]:
        """The highest rate of tokens when one of `rows` sequences drafts, and its depth."""
        tokens, size = float(rows), rows
        best = (tokens / cost(size), 0)
        for depth, (gain, nodes) in enumerate(zip(self.gains, self.nodes, strict=True), 1):
            tokens += gain
            size += nodes
            best = max(best, (tokens / (cost(size) + self.cost * depth), depth))
        return best


NO_GAIN = ExpectedGain()


def share_out(offers: Sequence[ExpectedGain], cost: RelativeCost, margin: float) -> list[int]:
    """The depth of each sequence's draft that gives a step the highest rate of tokens.

    Levels are added by their gain for each node. Levels that do not beat the step without drafts by
    the factor `margin` are left out: times are measured, and chances estimated.
    """
    waiting = [(_density(offer, 0), row, 0) for row, offer in enumerate(offers) if offer.gains]
    heapq.heapify(waiting)
    tokens, size = float(len(offers)), len(offers)
    best, count = margin * tokens / cost(size), 0
    taken: list[int] = []
    while waiting:
        _, row, level = heapq.heappop(waiting)
        offer = offers[row]
        tokens += offer.gains[level]
        size += offer.nodes[level]
        taken.append(row)
        if tokens / cost(size) > best:
            best, count = tokens / cost(size), len(taken)
        if level + 1 < len(offer.gains):
            heapq.heappush(waiting, (_density(offer, level + 1), row, level + 1))
    return [taken[:count].count(row) for row in range(len(offers))]


def _density(offer: ExpectedGain, level: int) -> float:
    """The sort key of a level: lower is better."""
    return -offer.gains[level] / offer.nodes[level]


_MOST_SAVED: Final = 20.0


class ExplorationBudget:
    """When a paid drafter may be tried: the optimism of upper confidence bounds (Auer et al., 2002)
    with a budget.

    `share` of all time, counted in passes of the target, may be spent on drafts that do not pay. It
    starts empty, so that the share holds from the first step on.
    """

    def __init__(self, share: float = 0.01) -> None:
        self._share = share
        self._saved = 0.0
        self._steps = 0

    def passed(self, passes: float = 1.0) -> None:
        """Note a step of one sequence that took about `passes`."""
        self._steps += 1
        self._saved = min(self._saved + self._share * passes, _MOST_SAVED)

    def bonus(self, tested: float) -> float:
        """The optimistic addition to a chance after so many tests."""
        return math.sqrt(math.log(1.0 + self._steps) / (2.0 * (tested + 1.0)))

    def affords(self, passes: float) -> bool:
        """Whether `passes` can be spent now."""
        return passes <= self._saved

    def spend(self, passes: float) -> None:
        """Subtract the cost of a trial, even beyond the budget: the next one comes later."""
        self._saved -= passes


_LAST: Final = 32
_ENOUGH: Final = 6
_LEAST: Final = 0.5
_MOST: Final = 8.0
_PLAIN_OF: Final = 8


class StepTimes:
    """Compares steps with drafts to steps of as many rows without.

    By medians, because a prompt or an idle time may fall between two proposals.
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
        """Note proposed drafts: `expected` is the cost of the step, in plain steps of its rows."""
        self._since = (self._clock.now(), rows, expected)

    def begins(self, rows: int) -> None:
        """Note the request for the next proposal: the step of the last one is over."""
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
        """Whether a plain step is due for comparison: one of eight, until there are enough."""
        few = len(self._plain[rows])
        return few < _ENOUGH and self._drafted[rows] >= _PLAIN_OF * (few + 1)

    def steepness(self, rows: int) -> float:
        """The measured cost of drafts as a factor of the expected one; 1 until it is known."""
        plain, drafting = self._plain[rows], self._drafting[rows]
        if len(plain) < _ENOUGH or len(drafting) < _ENOUGH:
            return 1.0
        one = median(plain)
        if one <= 0.0:
            return 1.0
        factor = median((seconds / one - 1.0) / (over - 1.0) for seconds, over in drafting)
        return min(max(factor, _LEAST), _MOST)
