"""Where calls leave a run: models and tools behind what records their calls.

Knows neither a journal nor what becomes of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from weft.core.ports import ModelClient, ToolRunner
from weft.core.values import ToolSpec
from weft.durability.calls import CallLog, RecordingClient, RecordingTools
from weft.workflow.document.tool_servers import ToolServer, open_source
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.models.composed import ComposedModels, is_composed
from weft.workflow.runtime.models.factory import ModelSource
from weft.workflow.runtime.tools.toolset import ToolBoundary

Leaf = Callable[[Unit, str], ModelClient]
"""The client that stands for a declared model which is not made of others."""


class BoundaryModels:
    """Implements `ModelSource` with clients that `leaf` makes, each once.

    Models that are made of others are made of those clients, unless they are among `given`.
    """

    def __init__(self, leaf: Leaf, given: Container[str] = ()) -> None:
        self._leaf = leaf
        self._given = given
        self._made: dict[tuple[Unit, str], ModelClient] = {}
        self._composed = ComposedModels(self.client)

    def client(self, unit: Unit, name: str) -> ModelClient:
        if name not in self._given and is_composed(unit, name):
            return self._composed.client(unit, name)
        if (unit, name) not in self._made:
            self._made[unit, name] = self._leaf(unit, name)
        return self._made[unit, name]


def recorded_models(
    inner: ModelSource, book: CallLog, given: Container[str] = ()
) -> BoundaryModels:
    """The models of `inner`, whose calls are written to `book`."""

    def leaf(unit: Unit, name: str) -> ModelClient:
        from weft.workflow.runtime.models.think import ThoughtModel

        client = inner.client(unit, name)
        if isinstance(client, ThoughtModel):  # its threads are nodes; what they ask is recorded
            return client.over(lambda model: RecordingClient(model, name, book))
        return RecordingClient(client, name, book)

    return BoundaryModels(leaf, given)


@dataclass(frozen=True, slots=True)
class ReplayBoundary:
    """What stands for everything outside of a run: nothing leaves it."""

    border: ToolBoundary
    models: ModelSource


class RecordingBoundary:
    """Implements `ToolBoundary`: calls of tools are written to `book`."""

    def __init__(self, book: CallLog) -> None:
        self._book = book

    def tools(self, inner: ToolRunner, source: str = "") -> ToolRunner:
        return RecordingTools(inner, self._book, source)

    def source(self, unit: Unit, name: str) -> ToolServer:
        return open_source(unit, name)

    async def listed(self, tools: ToolRunner) -> Sequence[ToolSpec]:
        assert isinstance(tools, RecordingTools)
        return await tools.listed()
