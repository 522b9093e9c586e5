"""An agent that is resumed gets the results of the calls that it makes again, and of no others."""

from __future__ import annotations

import pytest

from tests.durability.recorded import go_on, record
from weft.agents.chat.model_call import ask
from weft.agents.loops.tool_calls import Call, call_all
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest
from weft.core.values import Message
from weft.engine import Inputs, Node, NodeContext
from weft.testing import FakeModel, FakeTools


@pytest.mark.parametrize("again", ["rome", "oslo"])
def test_results_belong_to_what_was_asked(again: str) -> None:
    """The agent of the first part had not ended; in the second it may choose otherwise."""
    asked: list[str] = []

    def look(city: str) -> str:
        asked.append(city)
        return f"about {city}"

    def agent(city: str) -> list[Node]:
        tools = FakeTools(look=look)
        model = FakeModel(lambda request: f"told of {request.messages[0].content}")

        async def work(context: NodeContext, _: Inputs) -> str:
            [seen] = await call_all(context, "calls", tools, [Call(1, "look", {"city": city})])
            request = ModelRequest((Message("user", str(seen.outcome.value)),))
            return (await ask(context, "say", model, request)).text

        return [Node(NodeId("agent"), work)]

    first = record(agent("rome"))
    ended = [str(getattr(each.record, "node", "")) for each in first.records]
    cut = first.records[: len(ended) - 1 - ended[::-1].index("agent")]
    second = go_on(agent(again), cut)
    assert second["agent"].value == f"told of about {again}"
    assert asked == (["rome"] if again == "rome" else ["rome", "oslo"])
