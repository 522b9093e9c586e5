"""Programs that nobody ran, of any size, to try schedules on and to measure the scheduler with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from weft.core.events import NodeInfo
from weft.core.ids import NodeId, inside, item
from weft.durability.simulate.script import (
    Attempt,
    CallKind,
    ExpandStep,
    NodeScript,
    RecordedRun,
    TimeSpan,
    WorkStep,
)
from weft.engine.graph.node import Join

_CHUNK: Final = 1_000
_TIMES: Final = 1_024
_JOIN: Final = Join()


@dataclass(frozen=True, slots=True)
class Synthetic:
    """Documents, each searched for, read in `parts` side by side, and summed up.

    About `nodes` nodes in all. Searches take slots of `workers` tool workers, reading those of
    `replicas` times `places` in the batches of a model. Times are log-normal: medians of `tool_s`
    and `model_s` seconds, of the shape `sigma`, drawn from `seed`. Documents come in chunks of
    1,000, and are made when their chunk begins.
    """

    nodes: int = 1_000
    parts: int = 8
    tool_s: float = 0.3
    model_s: float = 2.0
    sigma: float = 0.6
    workers: int = 64
    replicas: int = 8
    places: int = 32
    seed: int = 0

    def recording(self) -> RecordedRun:
        """The program, as if it had been recorded."""
        random = Random(self.seed)
        searches = [self._attempts(random, "tool", self.tool_s) for _ in range(_TIMES)]
        readings = [self._attempts(random, "model", self.model_s) for _ in range(_TIMES)]
        limits = {"model": self.replicas * self.places, "tool": self.workers}
        left = max(1, self.nodes // (self.parts + 3))
        chunks: list[NodeScript] = []
        while left > 0:
            node = NodeId(f"chunk_{len(chunks)}")
            size = min(left, _CHUNK)
            chunks.append(self._chunk(node, size, random, searches, readings))
            left -= size
        return RecordedRun("synthetic", tuple(chunks), limits, 0.0, {})

    def _attempts(self, random: Random, kind: CallKind, usual_s: float) -> list[Attempt]:
        seconds = usual_s * random.lognormvariate(0.0, self.sigma)
        return [Attempt([WorkStep((TimeSpan(kind, kind, seconds),))])]

    def _chunk(
        self,
        node: NodeId,
        size: int,
        random: Random,
        searches: list[list[Attempt]],
        readings: list[list[Attempt]],
    ) -> NodeScript:
        def documents() -> Iterator[NodeScript]:
            for index in range(size):
                yield self._document(item(node, index), node, random, searches, readings)

        results = tuple(item(node, index) for index in range(size))
        return _growing(NodeInfo(node, "map"), documents, results)

    def _document(
        self,
        node: NodeId,
        parent: NodeId,
        random: Random,
        searches: list[list[Attempt]],
        readings: list[list[Attempt]],
    ) -> NodeScript:
        found, total = inside(node, "search"), inside(node, "sum")
        parts = tuple(inside(node, f"part_{n}") for n in range(self.parts))

        def steps() -> Iterator[NodeScript]:
            yield NodeScript(NodeInfo(found, "tool", (), "tool", node), random.choice(searches))
            for part in parts:
                info = NodeInfo(part, "model", (found,), "model", node)
                yield NodeScript(info, random.choice(readings))
            yield NodeScript(
                NodeInfo(total, "model", parts, "model", node), random.choice(readings)
            )

        return _growing(NodeInfo(node, "item", (), None, parent), steps, (total,))


class _Made:
    """Scripts that are made when they are gone through."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], Iterator[NodeScript]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[NodeScript]:
        return self._make()


def _growing(
    info: NodeInfo, make: Callable[[], Iterator[NodeScript]], results: tuple[NodeId, ...]
) -> NodeScript:
    growth = ExpandStep(_Made(make), results, _JOIN, None, items=False)
    return NodeScript(info, [Attempt([growth])])
