"""Random programs of every kind of node, with tools whose effects stand in a ledger.

The same seed gives the same program, and the same values whatever happens on the way. Knows
neither journals nor processes.
"""

from __future__ import annotations

import asyncio
import json
import random
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from weft.core.errors import NodeFailed
from weft.core.ids import NodeId, inside
from weft.core.ports import ToolRunner
from weft.core.values import Usage
from weft.engine import (
    ALL,
    AskHuman,
    Edge,
    Expand,
    Inputs,
    Join,
    Node,
    NodeContext,
    NodeFn,
    Policy,
    Retry,
    best_effort,
    quorum,
)
from weft.engine.kinds import Fragment, fold, loop, map_over, subgraph

_QUICK_RETRY = Retry(3, delay_s=0.002)
Steps = Mapping[str, Callable[["Program", NodeId, tuple[str, ...]], list[Node]]]


class Program:
    """The nodes of one seed. What `tools` write under `maybe/` may be missing: it lost a race."""

    def __init__(self, seed: int, tools: ToolRunner) -> None:
        self._draw = random.Random(seed)
        self._tools = tools
        self.nodes: list[Node] = []
        names: list[str] = []
        for index in range(self._draw.randint(3, 7)):
            kind = self._draw.choice(list(_STEPS))
            sources = tuple(self._draw.sample(names, min(len(names), self._draw.randint(0, 2))))
            made = _STEPS[kind](self, NodeId(f"{kind}{index}"), sources)
            self.nodes += made
            names.append(made[-1].id)
        self.nodes.append(Node(NodeId("end"), self.plain(), _edges(tuple(names))))

    # -- works -------------------------------------------------------------------------------

    def plain(self, size: int = 0) -> NodeFn:
        """A number made of the inputs, after a moment; with `size`, a text of that length too."""
        pause_s = self._draw.random() * 0.004

        async def work(context: NodeContext, inputs: Inputs) -> Any:
            await asyncio.sleep(pause_s)
            context.spend(Usage(completion_tokens=1))
            number = number_of(inputs)
            return [number, "x" * size] if size else number

        return work

    def effect(self, *, maybe: bool = False, fails: int = 0) -> NodeFn:
        """Writes to the ledger, once for each node; in the first `fails` attempts it fails then."""
        pause_s = self._draw.random() * 0.003

        async def work(context: NodeContext, inputs: Inputs) -> Any:
            key = f"{'maybe/' if maybe else ''}{context.node}"
            await self._tools.call("look", {"key": key})
            written = await self._tools.call("write", {"key": key})
            await asyncio.sleep(pause_s)
            if context.attempt <= fails:
                raise NodeFailed("not yet", retryable=True)
            return [written, number_of(inputs)]

        return work

    def some(self) -> NodeFn:
        """Any of these."""
        return self._draw.choice((self.plain, lambda: self.plain(400), self.effect))()

    def body(self, *, alone: bool = True) -> Callable[[NodeId, Mapping[str, Any]], Fragment]:
        """One node after the other; where it may be `alone`, perhaps only one. The second may do
        without one that fails, and one that nobody needs may fail beside them."""
        first, second, alone = self.some(), self.effect(), alone and self._draw.random() < 0.5
        failing = self._draw.choice(("none", "none", "tolerated", "beside"))
        bad = self.effect(fails=9)

        def body(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
            edges = tuple(Edge(v.source, k) for k, v in bindings.items() if isinstance(v, Edge))
            given = {k: v for k, v in bindings.items() if not isinstance(v, Edge)}
            if alone:
                return Fragment((Node(scope, first, edges, given),), scope)
            one, two = inside(scope, "one"), inside(scope, "two")
            wrong, join, needs = inside(scope, "wrong"), ALL, (Edge(one, "one"),)
            nodes = [Node(one, first, edges, given)]
            if failing != "none":
                nodes.append(Node(wrong, bad, policy=Policy(on_failure="skip")))
            if failing == "tolerated":
                join, needs = best_effort("nothing"), (*needs, Edge(wrong, "wrong"))
            nodes.append(Node(two, second, needs, join=join))
            return Fragment(tuple(nodes), two)

        return body

    # -- kinds of steps ----------------------------------------------------------------------

    def work(self, name: NodeId, sources: tuple[str, ...]) -> list[Node]:
        return [Node(name, self.some(), _edges(sources))]

    def retried(self, name: NodeId, sources: tuple[str, ...]) -> list[Node]:
        work = self.effect(fails=self._draw.randint(1, 2))
        return [Node(name, work, _edges(sources), policy=Policy(retry=_QUICK_RETRY))]

    def stood_in(self, name: NodeId, sources: tuple[str, ...]) -> list[Node]:
        fallback = Node(NodeId("other"), self.effect())
        policy = Policy(retry=Retry(2, delay_s=0.001), fallback=fallback)
        return [Node(name, self.effect(fails=9), _edges(sources), policy=policy)]

    def failed(self, name: NodeId, sources: tuple[str, ...]) -> list[Node]:
        bad = Node(NodeId(f"{name}_bad"), self.effect(fails=9), policy=Policy(on_failure="skip"))
        edges = (*_edges(sources), Edge(bad.id, "bad"))
        return [bad, Node(name, self.effect(), edges, join=best_effort("nothing"))]

    def mapped(self, name: NodeId, sources: tuple[str, ...]) -> list[Node]:
        work = map_over("over", self.body(), width=self._draw.choice((None, 1, 2)))
        given = {"over": [self._draw.randint(0, 99) for _ in range(self._draw.randint(0, 4))]}
        return [Node(name, work, _order(sources), given)]

    def streamed(self, name: NodeId, sources: tuple[str, ...]) -> list[Node]:
        source = self.mapped(NodeId(f"{name}_items"), sources)[0]
        edge = Edge(source.id, "items", stream=True)
        again = Node(NodeId(f"{name}_again"), map_over("items", self.body()), (edge,))
        total = fold(lambda a, b: number_of([a, b]), 0, "items")
        folded = Node(NodeId(f"{name}_fold"), total, (edge,))
        return [source, again, folded, Node(name, self.plain(), _edges((again.id, folded.id)))]

    def looped(self, name: NodeId, sources: tuple[str, ...]) -> list[Node]:
        rounds = self._draw.randint(1, 3)
        work = loop(self.body(), until=lambda _, number: number >= rounds, max_iterations=3)
        return [Node(name, work, _order(sources))]

    def nested(self, name: NodeId, sources: tuple[str, ...]) -> list[Node]:
        return [Node(name, subgraph(self.body(alone=False)), _edges(sources))]

    def appended(self, name: NodeId, sources: tuple[str, ...]) -> list[Node]:
        """Like an agent: it decides what comes next by what came before."""
        works = [self.some() for _ in range(3)]
        beside = [self.effect() for _ in range(self._draw.randint(0, 2))]

        async def work(context: NodeContext, inputs: Inputs) -> Any:
            found: list[Any] = [number_of(inputs)]
            side = [inside(context.scope, f"side{i}") for i in range(len(beside))]
            context.append([Node(i, w) for i, w in zip(side, beside, strict=True)])
            for turn in range(1 + found[0] % 3):
                place = inside(context.scope, f"turn{turn}")
                context.append([Node(place, works[turn], given={"so far": list(found)})])
                found.append((await context.outcome(place)).value)
            return [*found, *[(await context.outcome(each)).value for each in side]]

        return [Node(name, work, _edges(sources))]

    def raced(self, name: NodeId, sources: tuple[str, ...]) -> list[Node]:
        """Whoever wins, the value is the same."""
        places = tuple(inside(name, f"way{i}") for i in range(4))
        works = [self._way(maybe=i % 2 == 0) for i in range(4)]
        nodes = tuple(Node(p, w, given={"salt": 1}) for p, w in zip(places, works, strict=True))
        join = self._draw.choice((Join("any"), quorum(2)))

        async def work(_: NodeContext, __: Inputs) -> Expand:
            return Expand(nodes, places, join=join)

        return [Node(name, work, _order(sources))]

    def chosen(self, name: NodeId, sources: tuple[str, ...]) -> list[Node]:
        """A race of nodes that are there from the beginning."""
        ways = [Node(NodeId(f"{name}_way{i}"), self._way(maybe=i == 0)) for i in range(3)]
        join = Join("any", cancel_rest=self._draw.random() < 0.7)
        joined = Node(NodeId(f"{name}_any"), _first, _edges(tuple(w.id for w in ways)), join=join)
        return [*ways, joined, Node(name, self.effect(), _edges((joined.id, *sources)))]

    def asked(self, name: NodeId, sources: tuple[str, ...]) -> list[Node]:
        async def work(context: NodeContext, _: Inputs) -> AskHuman:
            async def again(_: NodeContext, answer: Any) -> AskHuman:
                async def both(_: NodeContext, other: Any) -> Any:
                    return [answer, other]

                return AskHuman("second", then=both)

            return AskHuman("first", then=again)

        return [Node(name, work, _order(sources))]

    def _way(self, *, maybe: bool) -> NodeFn:
        pause_s = self._draw.random() * 0.006

        async def work(context: NodeContext, inputs: Inputs) -> Any:
            await asyncio.sleep(pause_s)
            if maybe:
                await self._tools.call("write", {"key": f"maybe/{context.node}"})
            return "the same"

        return work


def number_of(value: Any) -> int:
    """A number that is the same for the same value."""
    return zlib.crc32(json.dumps(value, sort_keys=True).encode()) % 1000


async def _first(_: NodeContext, inputs: Inputs) -> Any:
    return sorted(set(inputs.values()))


def _edges(sources: tuple[str, ...]) -> tuple[Edge, ...]:
    return tuple(Edge(NodeId(source), source) for source in sources)


def _order(sources: tuple[str, ...]) -> tuple[Edge, ...]:
    return tuple(Edge(NodeId(source)) for source in sources)


_STEPS: Steps = {
    "work": Program.work,
    "retried": Program.retried,
    "stood": Program.stood_in,
    "failed": Program.failed,
    "mapped": Program.mapped,
    "streamed": Program.streamed,
    "looped": Program.looped,
    "nested": Program.nested,
    "appended": Program.appended,
    "raced": Program.raced,
    "chosen": Program.chosen,
    "asked": Program.asked,
}
