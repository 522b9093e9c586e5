"""Programs whose nodes take real time: sleeps of drawn lengths, and work in threads."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from weft.agents.tools.threads import in_thread
from weft.core.errors import ToolRaised
from weft.core.ids import NodeId, inside
from weft.engine import Edge, Graph, Join, Node, Policy, Retry
from weft.engine.graph.node import Inputs, NodeContext, NodeFn
from weft.engine.kinds import loop, map_over
from weft.engine.kinds.body import Fragment

Program = Callable[[int], Graph]


def sleeping(seconds: float, value: object = 0) -> NodeFn:
    """A call that waits, as a call of a server does."""

    async def work(_: NodeContext, __: Inputs) -> object:
        await asyncio.sleep(seconds)
        return value

    return work


def hashing(rounds: int) -> NodeFn:
    """A call that computes, in a thread."""

    async def work(_: NodeContext, __: Inputs) -> object:
        return await in_thread(
            lambda: hashlib.pbkdf2_hmac("sha256", b"weft", b"salt", rounds).hex(), "hash"
        )

    return work


def items(seed: int) -> Graph:
    """A map of 30 calls of unlike lengths, and a summary."""
    times = _times(seed, 30, 0.12)

    def body(node: NodeId, bindings: Any) -> Fragment:
        return Fragment((Node(node, sleeping(times[bindings["index"]])),), node)

    return Graph("items", [*_mapped("notes", 30, body), _after("sum", ["notes"], 0.1)])


def chains(seed: int) -> Graph:
    """Six chains of five calls each, of which the last needs all."""
    times = _times(seed, 30, 0.12)
    nodes: list[Node] = []
    for chain in range(6):
        for place in range(5):
            source = [f"c{chain}_{place - 1}"] if place else []
            nodes.append(_after(f"c{chain}_{place}", source, times[5 * chain + place]))
    ends = [f"c{chain}_4" for chain in range(6)]
    return Graph("chains", [*nodes, _after("end", ends, 0.05)])


def layers(seed: int) -> Graph:
    """A random graph: 40 calls, each after up to three before it."""
    random, times = Random(seed), _times(seed, 40, 0.1)
    nodes = []
    for place in range(40):
        before = [f"n{n}" for n in range(max(0, place - 8), place)]
        sources = random.sample(before, min(len(before), random.randint(0, 3)))
        nodes.append(_after(f"n{place}", sources, times[place]))
    return Graph("layers", nodes)


def nested(seed: int) -> Graph:
    """Eight documents: each a search, four parts and a sum."""
    times = _times(seed, 48, 0.1)

    def body(node: NodeId, bindings: Any) -> Fragment:
        first = 6 * bindings["index"]
        found, total = inside(node, "search"), inside(node, "sum")
        parts = [inside(node, f"part{n}") for n in range(4)]
        nodes = [Node(found, sleeping(times[first]))]
        nodes += [
            Node(part, sleeping(times[first + 1 + n]), (Edge(found, "x"),))
            for n, part in enumerate(parts)
        ]
        edges = tuple(Edge(part, f"p{n}") for n, part in enumerate(parts))
        nodes.append(Node(total, sleeping(times[first + 5]), edges))
        return Fragment(tuple(nodes), total)

    return Graph("nested", _mapped("documents", 8, body))


def retried(seed: int) -> Graph:
    """A map of 20 calls of which every fourth fails once, and is repeated."""
    times = _times(seed, 20, 0.12)

    def body(node: NodeId, bindings: Any) -> Fragment:
        index = bindings["index"]

        async def work(context: NodeContext, _: Inputs) -> int:
            await asyncio.sleep(times[index])
            if index % 4 == 0 and context.attempt == 1:
                raise ToolRaised("once more", retryable=True)
            return 0

        policy = Policy(retry=Retry(2, 0.05, jitter=0.0))
        return Fragment((Node(node, work, policy=policy),), node)

    return Graph("retried", _mapped("calls", 20, body))


def rounds(seed: int) -> Graph:
    """Four loops of five rounds side by side, and the first two of them to end."""
    times = _times(seed, 20, 0.1)
    nodes = []
    for place in range(4):

        def body(node: NodeId, bindings: Any, place: int = place) -> Fragment:
            seconds = times[5 * place + bindings["iteration"] - 1]
            return Fragment((Node(node, sleeping(seconds)),), node)

        name = f"loop{place}"
        nodes.append(Node(NodeId(name), loop(body, until=_never, max_iterations=5), kind="loop"))
    edges = tuple(Edge(node.id, node.id) for node in nodes)
    nodes.append(Node(NodeId("two"), sleeping(0.05), edges, join=Join("quorum", 2)))
    return Graph("rounds", nodes, keep=[node.id for node in nodes])


def computed(seed: int) -> Graph:
    """Twelve calls that compute in threads, beside calls that wait: more slots than cores."""
    random = Random(seed)
    nodes = [Node(NodeId(f"h{n}"), hashing(random.randint(40_000, 120_000))) for n in range(12)]
    nodes += [_after(f"s{n}", [f"h{n}"], 0.1) for n in range(12)]
    return Graph("computed", nodes)


def _never(_value: object, _round: int) -> bool:
    return False


def _times(seed: int, count: int, usual_s: float) -> Sequence[float]:
    random = Random(seed)
    return [usual_s * random.lognormvariate(0.0, 0.6) for _ in range(count)]


def _after(name: str, sources: Sequence[str], seconds: float) -> Node:
    edges = tuple(Edge(NodeId(source), source) for source in sources)
    return Node(NodeId(name), sleeping(seconds), edges)


def _mapped(name: str, count: int, body: Any) -> list[Node]:
    values = Node(NodeId(f"{name}_list"), sleeping(0.01, list(range(count))))
    edge = (Edge(values.id, "over"),)
    return [values, Node(NodeId(name), map_over("over", body), edge, kind="map")]


PROGRAMS: dict[str, Program] = {
    program.__name__: program
    for program in (items, chains, layers, nested, retried, rounds, computed)
}
