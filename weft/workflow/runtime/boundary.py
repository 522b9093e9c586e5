"""The I/O boundary of a run: wraps models and tools so that their calls are recorded."""

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
"""Makes the client of a declared model that is not composed of others."""


class BoundaryModels:
    """Implements `ModelSource` with clients that `leaf` makes, each once.

    Composed models are composed of those clients, unless they are among `given`.
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
    inner: ModelSource, call_log: CallLog, given: Container[str] = ()
) -> BoundaryModels:
    """The models of `inner`, whose calls are written to `call_log`."""

    def leaf(unit: Unit, name: str) -> ModelClient:
        from weft.workflow.runtime.models.think import ThoughtModel

        client = inner.client(unit, name)
        if isinstance(client, ThoughtModel):  # its threads are nodes; their calls are recorded
            return client.over(lambda model: RecordingClient(model, name, call_log))
        return RecordingClient(client, name, call_log)

    return BoundaryModels(leaf, given)


@dataclass(frozen=True, slots=True)
class ReplayBoundary:
    """The I/O boundary of a replay: no call leaves the run."""

    tools: ToolBoundary
    models: ModelSource


class RecordingBoundary:
    """Implements `ToolBoundary`: calls of tools are written to `call_log`."""

    def __init__(self, call_log: CallLog) -> None:
        self._call_log = call_log

    def tools(self, inner: ToolRunner, source: str = "") -> ToolRunner:
        return RecordingTools(inner, self._call_log, source)

    def source(self, unit: Unit, name: str) -> ToolServer:
        return open_source(unit, name)

    async def listed(self, tools: ToolRunner) -> Sequence[ToolSpec]:
        assert isinstance(tools, RecordingTools)
        return await tools.listed()
