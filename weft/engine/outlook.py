"""What lies ahead of a running program: its remaining critical path, and the time a node has left.

Computed only when a node asks; changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop
from itertools import islice

from weft.engine.frontier import Frontier
from weft.engine.ledger import Ledger
from weft.engine.state import NodeState, Phase


class Outlook:
    """The view ahead from one run, which may grow and go on between two questions."""

    def __init__(self, frontier: Frontier, ledger: Ledger) -> None:
        self._frontier = frontier
        self._states = frontier.states
        self._ledger = ledger
        self._longest: list[tuple[float, int, NodeState]] = []
        self._seen = 0

    def remaining(self) -> float:
        """The heaviest way from any node that has not ended to a sink, in weights."""
        longest = self._longest
        if len(self._states) > self._seen:
            news = islice(self._states.values(), self._seen, None)
            longest += ((-state.rank, state.order, state) for state in news)
            heapify(longest)
            self._seen = len(self._states)
        while longest and longest[0][2].phase is Phase.ENDED:
            heappop(longest)
        return -longest[0][0] if longest else 0.0

    def work(self) -> float:
        """The weight of all nodes that spend and have not ended. What is to grow is not known."""
        return max(0.0, self._frontier.work)

    def time_left(self, state: NodeState, now_s: float, deadline_s: float | None) -> float | None:
        """Seconds until something ends `state`: a timeout, a budget or the run's deadline."""
        ends = [] if deadline_s is None else [deadline_s]
        ends += (scope.due_s for scope in _scopes(state) if scope.due_s is not None)
        for account in self._ledger.accounts(state):
            seconds, degrades = account.budget.seconds, account.limit.on_reached == "degrade"
            if seconds is not None and not degrades:
                ends.append(account.since_s + seconds)
        return max(0.0, min(ends) - now_s) if ends else None


def _scopes(state: NodeState | None) -> Iterator[NodeState]:
    while state is not None:
        yield state
        state = state.parent
