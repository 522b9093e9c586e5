"""The longest remaining path of a growing run, whatever the sizes of its expansions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from weft.engine.scheduler.scheduler import CriticalPathEstimate
from weft.engine.scheduler.state import NodePhase


@dataclass
class _State:
    rank: float
    order: int
    phase: NodePhase = NodePhase.PENDING


class _Frontier:
    def __init__(self) -> None:
        self.states: dict[str, _State] = {}


@given(
    st.lists(
        st.tuples(st.lists(st.integers(1, 9), max_size=40), st.integers(0, 30), st.booleans()),
        max_size=20,
    )
)
def test_the_longest_path_is_that_of_the_nodes_that_have_not_ended(
    steps: list[tuple[list[int], int, bool]],
) -> None:
    frontier = _Frontier()
    made: Any = frontier
    estimate = CriticalPathEstimate(made, made)
    for ranks, ending, asked in steps:
        for rank in ranks:
            order = len(frontier.states)
            frontier.states[f"{order}"] = _State(rank, order)
        running = [each for each in frontier.states.values() if each.phase is NodePhase.PENDING]
        for state in sorted(running, key=lambda each: -each.rank)[:ending]:
            state.phase = NodePhase.ENDED
        if asked:
            left = [
                each.rank for each in frontier.states.values() if each.phase is not NodePhase.ENDED
            ]
            assert estimate.remaining() == max(left, default=0.0)
