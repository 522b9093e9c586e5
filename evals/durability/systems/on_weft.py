"""weft: a `Run` with a recorder on a SQLite journal, at each durability."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import perf_counter
from typing import Any

from evals.durability.cases import CHAIN, NODES, WIDTH, said, turns_of
from weft.core.ids import NodeId, RunId, inside
from weft.core.ports.journal import RunHeader
from weft.core.values import Message
from weft.engine import Edge, Graph, Inputs, Node, NodeContext, Run
from weft.engine.journal import SqliteJournal
from weft.engine.kinds import Fragment, loop
from weft.engine.recorder import Durability, Recorder

_DURABILITY: dict[str, Durability] = {
    "weft_none": "none",
    "weft_async": "async",
    "weft_sync": "sync",
    "weft_power_safe": "sync",
}


class System:
    """One journal for all runs."""

    def __init__(self, system: str, case: str, folder: Path) -> None:
        self._durability = _DURABILITY[system]
        power_safe = system == "weft_power_safe"
        self._journal = SqliteJournal(folder / "weft.sqlite", power_safe=power_safe)
        self._case = case
        self._runs = 0
        self._graph = Graph(case, _nodes(case, 0))

    def run(self) -> float:
        self._runs += 1
        if self._case not in NODES:  # each conversation is another
            self._graph = Graph(self._case, _nodes(self._case, self._runs))
        run = RunId(f"run{self._runs}")
        header = RunHeader(run, self._graph.name, "2026-01-01T00:00:00+00:00", "0")
        claim = self._journal.begin(header)
        try:
            return asyncio.run(self._timed(run))
        finally:
            claim.release()

    async def _timed(self, run: RunId) -> float:
        recorder = Recorder(self._journal, run, self._durability)
        began = perf_counter()
        result = await Run(
            self._graph, run=run, recorder=None if self._durability == "none" else recorder
        ).wait()
        took = perf_counter() - began
        if result.status != "succeeded":
            raise RuntimeError(f"{result.status}: {result.reasons}")
        return took

    def close(self) -> None:
        self._journal.close()


def _nodes(case: str, talk: int) -> list[Node]:
    if case == "chain_100":
        return [
            Node(NodeId(f"n{i}"), _work, (Edge(NodeId(f"n{i - 1}"), "done"),) if i else ())
            for i in range(CHAIN)
        ]
    if case == "fanout_1000":
        source = Node(NodeId("source"), _work)
        ways = [Node(NodeId(f"n{i}"), _work, (Edge(source.id, "done"),)) for i in range(WIDTH)]
        sink = Node(NodeId("sink"), _work, tuple(Edge(way.id, way.id) for way in ways))
        return [source, *ways, sink]
    return [Node(NodeId("talk"), _talk(turns_of(case), talk))]


async def _work(_: NodeContext, __: Inputs) -> int:
    return 1


def _talk(turns: int, talk: int) -> Any:
    def body(scope: NodeId, bindings: Any) -> Fragment:
        turn = inside(scope, "turn")
        return Fragment((Node(turn, _turn, given={**bindings, "talk": talk}),), turn)

    return loop(
        body, until=lambda _, number: number >= turns, max_iterations=turns, start=lambda _: []
    )


async def _turn(_: NodeContext, inputs: Inputs) -> list[Message]:
    turn = inputs["iteration"] - 1
    return [
        *inputs["value"],
        Message("user", said(inputs["talk"], turn, "user")),
        Message("assistant", said(inputs["talk"], turn, "assistant")),
    ]
