"""A workflow as a tool: its inputs are the arguments, its outputs the result."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic_core import from_json, to_json

from weft.core.errors import Cancelled, ToolResultError
from weft.core.ids import RunId
from weft.core.ports import ModelClient
from weft.core.values import JsonSchema, ToolSpec
from weft.validation import violation_async
from weft.workflow.apps.served import RecordingOptions, ServedFlow
from weft.workflow.document.check.types import TypeChecker
from weft.workflow.document.inputs import check_inputs_async
from weft.workflow.flow import Flow
from weft.workflow.runtime.models.factory import ModelSource
from weft.workflow.runtime.options import AnswerFunction
from weft.workflow.runtime.results.result import FlowResult, check_result
from weft.workflow.runtime.results.run_stream import RunStreams
from weft.workflow.runtime.tools.toolset import Toolset


@dataclass(frozen=True, slots=True)
class FlowBegan:
    """A recorded run has begun; the journal has it as `run`."""

    run: RunId


@dataclass(frozen=True, slots=True)
class FlowProgress:
    """A top-level node has ended: `ended` of `nodes`; `line` names it and its status."""

    ended: int
    nodes: int
    line: str


@dataclass(frozen=True, slots=True)
class FlowOutputs:
    """The run has succeeded. `values` are plain data, by the names of the outputs."""

    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FlowAsks:
    """The run is left at `questions`, as data, that nobody answered. `recorded`: it can go on."""

    run: RunId
    questions: Sequence[Mapping[str, Any]]
    recorded: bool


FlowStep = FlowBegan | FlowProgress | FlowOutputs | FlowAsks


class FlowTool:
    """Runs of `flow`, each with its own arguments; see `ServedFlow`."""

    def __init__(
        self,
        flow: Flow,
        models: ModelSource | Mapping[str, ModelClient],
        recording: RecordingOptions | None = None,
    ) -> None:
        self._served = ServedFlow(flow, models, recording, "a tool", attended=True)
        self._flow = flow
        self._runs = RunStreams(waits=False)  # a client that leaves may be in a hurry
        outputs = TypeChecker(flow.unit, Toolset()).outputs()
        self.spec = ToolSpec(flow.name, flow.description, _parameters(flow), outputs)

    async def call(
        self, arguments: Mapping[str, Any], answer: AnswerFunction | None = None
    ) -> AsyncGenerator[FlowStep, None]:
        """Run the workflow: progress as it comes, then the outputs. Closing it cancels the run.

        `answer` answers its questions; one without an answer ends it in `FlowAsks`.

        Raises: `InputError`, `ToolResultError`, and the reason why there is no result.
        """
        inputs = await check_inputs_async(self._flow.document, arguments)
        ended, nodes = 0, len(self._flow.nodes)
        start = partial(self._served.start, answer=answer)
        async with self._runs.start(lambda on: start(inputs, (on,))) as stream:
            if stream.run.recorded:
                yield FlowBegan(stream.run.id)
            async for event in stream:
                if line := self._served.ended(event):
                    ended += 1
                    yield FlowProgress(ended, nodes, line)
            if stream.cancelled:
                raise Cancelled(f"{self._flow.name} was ended")
            result = stream.result()
            if result.questions:
                asked = stream.run.redacted([question.data() for question in result.questions])
                yield FlowAsks(stream.run.id, asked, stream.run.recorded)
                return
            yield FlowOutputs(await self._outputs(result))

    async def aclose(self) -> None:
        """Cancel all runs, and wait for them."""
        await self._runs.aclose()

    async def _outputs(self, result: FlowResult) -> Mapping[str, Any]:
        """All outputs of a run. Raises: the reason why one is missing."""
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
    """A schema, or a part of one, moved to `place` of another, with its references adjusted."""
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
