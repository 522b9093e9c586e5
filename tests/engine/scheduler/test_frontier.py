"""A work that appends a long plan step by step, each step on the one before."""

from __future__ import annotations

import pytest

from tests.engine.virtual_run import echo, node, play
from weft.core.ids import NodeId
from weft.engine import Inputs, NodeContext
from weft.engine.scheduler.frontier import Frontier
from weft.engine.scheduler.state import NodeState


def test_each_step_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 500
    looked_at: list[NodeId] = []
    sources = Frontier.sources

    def counted(frontier: Frontier, state: NodeState) -> list[NodeState]:
        looked_at.append(state.node.id)
        return sources(frontier, state)

    async def plan(context: NodeContext, inputs: Inputs) -> str:
        before: list[str] = []
        for number in range(steps):
            context.append([node(f"plan/step{number}", echo, *before)])
            before = [f"plan/step{number}"]
        return "planned"

    monkeypatch.setattr(Frontier, "sources", counted)
    played = play(node("plan", plan))
    assert len(played.by_node) == steps + 1
    assert all(outcome.ok for outcome in played.by_node.values())
    assert len(looked_at) <= 2 * steps
