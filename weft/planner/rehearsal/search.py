"""Search for calls to fill in before the steps of a plan.

Best-first: plans with fewer open steps first, and among these by the calls filled in so far plus
twice an estimate of those that the next step still needs (weighted A*). The estimate is the length
of a plan that ignores what calls undo (Hoffmann and Nebel, "The FF Planning System", 2001). A fill
is short, and not always the shortest. The search is complete: it tries everything before it gives
up, within its limit of states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Final

from weft.planner.rehearsal.grounding import GroundCall
from weft.planner.rehearsal.literals import UNCHANGED, StateChange


@dataclass(frozen=True, slots=True)
class FillAction:
    """A call that may be filled in: the bits that it needs, and its change."""

    call: GroundCall
    needs: int
    change: StateChange


@dataclass(frozen=True, slots=True)
class StepAction:
    """A step of the plan: one of `needs` has to hold before it."""

    needs: tuple[int, ...]
    change: StateChange = UNCHANGED

    def runs_in(self, state: int) -> bool:
        """Whether its needs hold."""
        return any(state & needs == needs for needs in self.needs)


class NoFill(Exception):
    """There is no fill: `step` (from 0) cannot be reached, at best in the world `state`.

    `spent`: the limit of states was reached.
    """

    def __init__(self, step: int, state: int, spent: bool) -> None:
        super().__init__(step)
        self.step = step
        self.state = state
        self.spent = spent


class RelaxedPlan:
    """Estimates how many calls lead to needs, if no call undoes anything."""

    def __init__(self, actions: Sequence[FillAction]) -> None:
        self._actions = actions

    def length(self, state: int, targets: Sequence[int]) -> int | None:
        """The length of such a plan from `state` to one of `targets`; None where there is none."""
        reached, waiting = state, self._actions
        support: list[tuple[int, FillAction]] = []
        while (target := _within(targets, reached)) is None:
            gained, later = 0, []
            for action in waiting:
                if action.needs & ~reached:
                    later.append(action)
                elif new := action.change.adds & ~(reached | gained):
                    gained |= new
                    support.append((new, action))
            if not gained:
                return None
            reached, waiting = reached | gained, later
        return _chosen(target & ~state, support, state)


def _within(targets: Sequence[int], reached: int) -> int | None:
    return next((target for target in targets if not target & ~reached), None)


def _chosen(wanted: int, support: Sequence[tuple[int, FillAction]], state: int) -> int:
    """The number of calls of `support`, each with what it was the first to make, for `wanted`."""
    length = 0
    for made, action in reversed(support):
        if wanted & made:
            length += 1
            wanted = wanted & ~made | action.needs & ~state
    return length


_WEIGHT: Final = 2

_Node = tuple[int, int]
"""The number of steps done, and the world."""


class FillSearch:
    """One search for the moves that carry out all `steps`, with `actions` between them."""

    def __init__(
        self, steps: Sequence[StepAction], actions: Sequence[FillAction], most_states: int
    ) -> None:
        self._steps = steps
        self._actions = actions
        self._most = most_states
        self._relaxed = RelaxedPlan(actions)
        self._queue: list[tuple[int, bool, int, int, _Node]] = []
        self._number = count()
        self._cost: dict[_Node, int] = {}
        self._before: dict[_Node, tuple[_Node, FillAction | None]] = {}
        self._deepest: _Node = (0, 0)

    @property
    def states(self) -> int:
        """The number of states that were found."""
        return len(self._cost)

    def moves(self, start: int) -> list[FillAction | None]:
        """The calls to fill in, and None for each step in its place. Raises: `NoFill`."""
        self._deepest = first = (0, start)
        self._cost[first] = 0
        self._push(first)
        while self._queue:
            *_, filling, _, _, node = heappop(self._queue)
            done, state = node
            if done == len(self._steps):
                return self._path(node)
            if self._steps[done].runs_in(state) and not filling:
                self._reach(node, (done + 1, self._steps[done].change.applied(state)), None)
                self._push(node, filling=True)
            else:
                self._fill(node)
        raise NoFill(*self._deepest, spent=False)

    def _fill(self, node: _Node) -> None:
        done, state = node
        for action in self._actions:
            if not action.needs & ~state:
                self._reach(node, (done, action.change.applied(state)), action)

    def _reach(self, node: _Node, after: _Node, action: FillAction | None) -> None:
        cost = self._cost[node] + (action is not None)
        if self._cost.get(after, cost + 1) <= cost:
            return
        if after not in self._cost and len(self._cost) == self._most:
            raise NoFill(*self._deepest, spent=True)
        self._cost[after] = cost
        self._before[after] = node, action
        if after[0] > self._deepest[0]:
            self._deepest = after
        self._push(after)

    def _push(self, node: _Node, *, filling: bool = False) -> None:
        """Queue `node`, unless its next step can never run. `filling`: try calls before it."""
        done, state = node
        left = len(self._steps) - done
        estimate = self._relaxed.length(state, self._steps[done].needs) if left else 0
        if estimate is not None:
            rank = self._cost[node] + _WEIGHT * estimate
            heappush(self._queue, (left, filling, rank, next(self._number), node))

    def _path(self, node: _Node) -> list[FillAction | None]:
        moves = []
        while node in self._before:
            node, action = self._before[node]
            moves.append(action)
        return moves[::-1]
