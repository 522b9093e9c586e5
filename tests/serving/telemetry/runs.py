"""Runs to listen to: a written one with calls, and real ones of the engine in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from weft.core.calls import (
    CallEvent,
    CallId,
    ModelAnswered,
    ModelCalled,
    ModelStreamed,
    ToolCalled,
    ToolReturned,
)
from weft.core.errors import ToolRaised
from weft.core.events import (
    Event,
    NodeFinished,
    NodeInfo,
    NodeSpent,
    NodeStarted,
    Outcome,
    RunFinished,
    RunStarted,
)
from weft.core.ids import NodeId, RunId
from weft.core.ports.clock import FakeClock
from weft.core.ports.model import ModelRequest, Sampling, TextDelta
from weft.core.values import Completion, Message, Usage
from weft.engine import Edge, Graph, Node, Policy, Retry, Run
from weft.engine.kinds import map_over
from weft.engine.kinds.body import Fragment

Listener = Callable[[Event | CallEvent], None]
SECRET = "a word nobody should see"
SPENT = Usage(12, 5, 4, 1, 5, 0.25)
WALL = "2026-11-22T10:00:00+00:00"


def told() -> list[Event | CallEvent]:
    """A run with a tool that fails once, and a model that answers."""
    find, write = NodeId("find"), NodeId("write")
    tool, model = CallId("tool:aa#0"), CallId("model:bb#0")
    infos = (NodeInfo(find, "tool"), NodeInfo(write, "model", (find,), "llm"))
    failed = ToolRaised("no such page").failure()
    request = ModelRequest((Message("user", SECRET),), sampling=Sampling(64, 0.5, seed=7))
    answer = Completion(SECRET, usage=SPENT, model="small")
    return [
        RunStarted(RunId("r-1"), "flow", WALL, infos, {}),
        NodeStarted(find, 1, 0.0),
        ToolCalled(find, 1, tool, "search", {"q": SECRET}, "pure", "k", 0.1),
        ToolReturned(find, 1, tool, None, failed, "not done", 0.2),
        ToolCalled(find, 2, tool, "search", {"q": SECRET}, "pure", "k", 0.3),
        ToolReturned(find, 2, tool, [SECRET], None, "done", 0.5),
        NodeFinished(find, Outcome("succeeded", [SECRET], attempts=2), 0.5),
        NodeStarted(write, 1, 0.5),
        ModelCalled(write, 1, model, "writer", request, 0.5),
        ModelStreamed(write, 1, model, ((0.75, TextDelta(SECRET)),), 0.8),
        ModelAnswered(write, 1, model, answer, None, 1.0),
        NodeSpent(write, SPENT, 1.0),
        NodeFinished(write, Outcome("succeeded", SECRET), 1.0),
        RunFinished("succeeded", SPENT, (), 1.0),
    ]


def run(graph: Graph, *listeners: Listener) -> None:
    """Run `graph` in virtual time."""
    clock = FakeClock()

    async def main() -> None:
        await Run(graph, clock=clock, listeners=listeners).wait()

    clock.run(main())


def growing() -> Graph:
    """A list, a map over it whose second item needs two attempts, and a node that fails."""

    async def items(_: object, __: object) -> list[int]:
        await asyncio.sleep(1)
        return [1, 2, 3]

    async def double(context: Any, inputs: Any) -> int:
        await asyncio.sleep(inputs["item"])
        if inputs["item"] == 2 and context.attempt == 1:
            raise ToolRaised("once more", retryable=True)
        return int(inputs["item"]) * 2

    async def broken(_: object, __: object) -> None:
        raise ToolRaised("not today")

    def body(node: NodeId, bindings: Any) -> Fragment:
        policy = Policy(retry=Retry(2, 0.5, jitter=0.0))
        return Fragment(
            (Node(node, double, given=dict(bindings), policy=policy, kind="tool"),), node
        )

    nodes = (
        Node(NodeId("items"), items, kind="tool"),
        Node(
            NodeId("doubled"),
            map_over("over", body),
            (Edge(NodeId("items"), "over"),),
            kind="map",
        ),
        Node(NodeId("broken"), broken, (Edge(NodeId("doubled")),)),
    )
    return Graph("growing", nodes)
