"""A workflow as a tool: its inputs are the arguments, its outputs the result. Knows no protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json, to_json

from weft.core.errors import Cancelled, ToolResultError
from weft.core.events import Event, NodeFinished
from weft.core.ids import RunId
from weft.core.ports import ModelClient
from weft.core.values import JsonSchema, ToolSpec
from weft.workflow.apps.served import RecordingOptions, check_unattended, served_run
from weft.workflow.document.check.types import TypeChecker
from weft.workflow.document.inputs import check_inputs_async
from weft.workflow.document.spec.schemas import violation_async
from weft.workflow.flow import Flow
from weft.workflow.runtime.models.factory import ModelSource
from weft.workflow.runtime.results.result import FlowResult, check_result
from weft.workflow.runtime.tools.toolset import Toolset


@dataclass(frozen=True, slots=True)
class FlowBegan:
    """A run that is recorded has begun: the journal has it under `run`."""

    run: RunId


@dataclass(frozen=True, slots=True)
class FlowProgress:
    """A node at the top of the workflow has ended: `ended` of `nodes`, and which one how."""

    ended: int
    nodes: int
    line: str


@dataclass(frozen=True, slots=True)
class FlowOutputs:
    """The run has ended well. `values` are plain data, by the names of the outputs."""

    values: Mapping[str, Any]


FlowStep = FlowBegan | FlowProgress | FlowOutputs


class FlowTool:
    """Runs of `flow`, as many at once as are asked for, each with its own arguments.

    `models` are shared by all runs and closed by whoever gives them; `kept`: which are recorded.

    Raises: `BuildError` when the workflow is not right, or asks a person.
    """

    def __init__(
        self,
        flow: Flow,
        models: ModelSource | Mapping[str, ModelClient],
        kept: RecordingOptions | None = None,
    ) -> None:
        flow.check()
        check_unattended(flow, "a tool")
        self._flow = flow
        self._models = models
        self._kept = kept or RecordingOptions()
        self._running: set[asyncio.Task[FlowResult]] = set()
        outputs = TypeChecker(flow.unit, Toolset()).outputs()
        self.spec = ToolSpec(flow.name, flow.description, _parameters(flow), outputs)

    async def call(self, arguments: Mapping[str, Any]) -> AsyncGenerator[FlowStep, None]:
        """Run the workflow: progress as it comes, and at last the outputs. Closing it ends the run.

        Raises: `InputError`, `ToolResultError`, and why there is no result.
        """
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        run = self._flow.start(
            await check_inputs_async(self._flow.document, arguments),
            listeners=(events.put_nowait,),
            models=self._models,
            journal=self._kept.journal,
            durability=self._kept.when,
            run=served_run(self._flow.name),
        )
        task = asyncio.create_task(run.wait())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: events.put_nowait(None))
        ended, nodes = 0, len(self._flow.nodes)
        try:
            if run.recorded:
                yield FlowBegan(run.id)
            while (event := await events.get()) is not None:
                if isinstance(event, NodeFinished) and event.node in self._flow.nodes:
                    ended += 1
                    how = "finished" if event.outcome.ok else event.outcome.status
                    yield FlowProgress(ended, nodes, f"{event.node} {how}")
            if task.cancelled():
                raise Cancelled(f"{self._flow.name} was ended")
            yield FlowOutputs(await self._outputs(task.result()))
        finally:
            task.cancel()  # it is waited for in `aclose`: who leaves may be in a hurry

    async def aclose(self) -> None:
        """End all runs, and wait for that."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    async def _outputs(self, result: FlowResult) -> Mapping[str, Any]:
        """The outputs of a run, all of them. Raises: why one is not there."""
        check_result(self._flow.document, result, result.missing)
        name = self._flow.name
        try:
            values: dict[str, Any] = from_json(to_json(result.outputs), allow_inf_nan=False)
        except ValueError as error:
            raise ToolResultError(f"{name}: JSON cannot hold the outputs: {error}") from error
        assert self.spec.result is not None
        why = await violation_async(values, self.spec.result)
        if why is not None:
            raise ToolResultError(f"{name}: the outputs are not what was promised: {why}")
        return values


def _moved(part: Any, place: str) -> Any:
    """A schema, or a part of one, that stands at `place` of another: references lead there."""
    if isinstance(part, list):
        return [_moved(inner, place) for inner in part]
    if not isinstance(part, dict):
        return part
    return {
        key: place + value[1:] if key == "$ref" and isinstance(value, str) else _moved(value, place)
        for key, value in part.items()
    }


def _parameters(flow: Flow) -> JsonSchema:
    return {
        "type": "object",
        "properties": {
            name: _moved(declared.schema_, f"#/properties/{name}")
            for name, declared in flow.inputs.items()
        },
        "required": [name for name, declared in flow.inputs.items() if declared.required],
        "additionalProperties": False,
    }
