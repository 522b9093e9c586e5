"""Where nobody knows whether a call was carried out, no model is asked what to do next."""

from __future__ import annotations

from typing import Any

import pytest

from weft.agents.loops.tool_calls import Call, call_all
from weft.core.errors import EffectUnknown, Failure, ToolRaised
from weft.core.events import Outcome
from weft.core.ids import NodeId
from weft.engine import Graph, Inputs, Node, NodeContext, Run
from weft.testing import FakeClock, FakeTools


def pay(amount: int) -> str:
    if amount > 1:
        raise EffectUnknown("nobody knows whether pay was carried out", hint="find out")
    raise ToolRaised("no")


@pytest.mark.parametrize(("amount", "ends"), [(1, "succeeded"), (2, "failed")])
def test_a_round_of_calls_ends_there(amount: int, ends: str) -> None:
    async def work(context: NodeContext, _: Inputs) -> Any:
        calls = [Call(1, "pay", {"amount": amount}), Call(2, "pay", {"amount": 0})]
        found = await call_all(context, "calls", FakeTools(pay=pay), calls)
        return [each.outcome.status for each in found]

    async def main() -> Outcome:
        node = NodeId("agent")
        result = await Run(Graph("g", (Node(node, work),)), clock=clock).wait()
        return result.outcomes[node]

    clock = FakeClock()
    outcome = clock.run(main())
    assert outcome.status == ends
    if ends == "failed":
        assert outcome.failure == Failure(
            "EffectUnknown", "nobody knows whether pay was carried out", "run", False, "find out"
        )
