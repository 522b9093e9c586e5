"""A workflow, written in Python or read from a file: check it, run it, draw it, write it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, Unpack, cast, overload

from pydantic import ValidationError
from typing_extensions import ParamSpec, TypeVar

from weft.agents.memory import Memory
from weft.cluster.settings import Placement
from weft.core.errors import BuildError, DuplicateName
from weft.core.events import Event, HumanAsked, Subscription
from weft.core.keywords import check_keywords, expect, refuses_unknown_keywords
from weft.core.loggers import logger
from weft.core.ports import ModelClient, ToolRunner
from weft.durability.calls import Confirmation
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.loader import load_unit
from weft.workflow.document.python_types import (
    fields_of,
    has_instances_in,
    input_names,
    no_field,
    plain,
)
from weft.workflow.document.recursion import check_recursion
from weft.workflow.document.references import check_references
from weft.workflow.document.spec.declarations import InputSpec
from weft.workflow.document.spec.defects import first_defect
from weft.workflow.document.spec.document import walk
from weft.workflow.document.spec.nodes import WorkflowNode
from weft.workflow.document.state_order import STATE
from weft.workflow.document.unit import DocumentOrigin, Unit
from weft.workflow.flow.handle import InputHandles, NodeHandle, kinds_of
from weft.workflow.flow.node_signatures import InputSignature
from weft.workflow.flow.python_values import document_value, is_type, schema_of, state_field
from weft.workflow.flow.run_arguments import SETTINGS, FlowOptions, inputs_together, split_arguments
from weft.workflow.flow.signatures import checked_as
from weft.workflow.flow.views import FlowViews
from weft.workflow.runtime.blocking import run_blocking
from weft.workflow.runtime.compiled import check_connected, check_unit
from weft.workflow.runtime.journals import journal_or_own
from weft.workflow.runtime.options import FlowLimits, FlowSettings, RunSettings
from weft.workflow.runtime.results.result import FlowResult, Out
from weft.workflow.runtime.results.run_stream import RunStream
from weft.workflow.runtime.run import FlowRun
from weft.workflow.runtime.tools.placement import checked_placement
from weft.workflow.runtime.tools.toolset import Toolset

if TYPE_CHECKING:
    from weft.workflow.flow.run_arguments import SubmitSettings
    from weft.workflow.queue.submission import SubmittedRun

_logger = logger("runs")

Untyped = Mapping[str, Any]
P = ParamSpec("P", default=...)
In = TypeVar("In", default=Untyped)

AnyFlow: TypeAlias = "Flow[Any, Any, ...]"


class Flow(FlowViews, Generic[In, Out, P]):
    """A workflow.

        flow = Flow("brief", models={"small": "local:smollm2-135m-instruct"})
        topic = flow.input("topic", str)
        hits = flow.tool(search, topic, limit=5)
        notes = flow.map(hits, lambda hit: flow.model("small", f"Summarise: {hit.text}"))
        flow.output(notes=notes)
        result = await flow.run(topic="rivers")

    `inputs` and `outputs` are types with fields: pydantic models, dataclasses or TypedDicts. Then
    `params` has the handles of the inputs, and the outputs of a result are an instance.
    `models`: declarations as in a file, or clients. `tools`: functions, import paths,
    declarations or a `Memory`, by name.
    `state`: its fields, as in a file: types, or mappings with `type`, `initial` and `reduce`. Nodes
    write it by `writes={"field": lambda value: value.part}`, and `flow.state.field` reads it.
    `folder`: the base of relative paths (default: the working directory).

    Raises: `BuildError` when a declaration is wrong.
    """

    @overload
    def __init__(
        self: Flow[Untyped, Untyped, ...], name: str, /, **options: Unpack[FlowOptions]
    ) -> None: ...
    @overload
    def __init__(
        self: Flow[In, Untyped, P],
        name: str,
        /,
        *,
        inputs: Callable[P, In],
        **options: Unpack[FlowOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Flow[Untyped, Out, ...],
        name: str,
        /,
        *,
        outputs: type[Out],
        **options: Unpack[FlowOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Flow[In, Out, P],
        name: str,
        /,
        *,
        inputs: Callable[P, In],
        outputs: type[Out],
        **options: Unpack[FlowOptions],
    ) -> None: ...
    @overload  # a checker may see no parameters in a TypedDict
    def __init__(
        self: Flow[In, Out, ...],
        name: str,
        /,
        *,
        inputs: type[In],
        outputs: type[Out] = Untyped,  # type: ignore[assignment]
        **options: Unpack[FlowOptions],
    ) -> None: ...
    def __init__(
        self,
        name: str,
        *,
        inputs: Any = None,
        outputs: Any = None,
        description: str | None = None,
        models: Mapping[str, str | Mapping[str, object] | ModelClient] | None = None,
        tools: Mapping[str, str | Mapping[str, object] | Callable[..., Any] | Memory] | None = None,
        state: Mapping[str, object] | None = None,
        folder: str | Path | None = None,
        **limits: Unpack[FlowLimits],
    ) -> None:
        check_keywords("Flow", limits, (*_FLOW_KEYWORDS, *FlowLimits.__annotations__))
        expect(name, str, "the name of a flow is a text", 'Flow("brief")')
        sections = (("models", models or {}), ("tools", tools or {}), ("state", state or {}))
        for key, section in sections:
            hint = f'write {key}={{"small": ...}}'
            expect(section, Mapping, f"`{key}` maps names to declarations", hint)
        super().__init__((Path(folder) if folder is not None else Path.cwd()).resolve())
        self._name = name
        self._description = description
        self._optimise: Any = None
        self._limits = {key: document_value(value, self) for key, value in limits.items()}
        self._inputs: dict[str, Any] = {}
        self._state = {name: state_field(field) for name, field in (state or {}).items()}
        self._level.bound |= {STATE} if self._state else set()
        self._outputs: dict[str, Any] = {}
        self._origin: DocumentOrigin | None = None
        self._root = self._folder
        self._unit: Unit | None = None
        self._changes = 0
        self._parts: dict[AnyFlow, int] = {}  # the flows in `_unit`, each with its changes then
        for model, declared in (models or {}).items():
            self._declare_model(model, declared)
        for tool, use in (tools or {}).items():
            self._declare_tool(tool, use)
        self._types.inputs, self._types.result = inputs, outputs
        for kind in (inputs, outputs):
            if kind is not None and fields_of(kind) is None:
                hint = "give a pydantic model, a dataclass or a TypedDict"
                raise BuildError(f"{kind!r} is not a type with fields", hint=hint)
        for field in (fields_of(inputs) or {}).values() if inputs is not None else ():
            described = field.kind if field.described is None else field.described
            self.input(field.key, described, default=field.default)

    @classmethod
    def of(cls, unit: Unit) -> Flow:
        """The workflow of a checked document."""
        document = unit.document
        flow = cls(document.name, description=document.description, folder=unit.folder)
        flow._limits = document.run.model_dump(by_alias=True, exclude_unset=True)
        flow._inputs = {name: declared.root for name, declared in document.inputs.items()}
        raw = document.model_dump(by_alias=True, exclude_unset=True)
        flow._optimise = raw.get("optimise")
        flow._models = dict(raw.get("models", {}))
        flow._tools = dict(raw.get("tools", {}))
        flow._state = dict(raw.get("state", {}))
        flow._level.nodes = dict(document.nodes)
        flow._level.bound = {*document.inputs, *[STATE] * bool(document.state)}
        flow._outputs = dict(document.outputs)
        flow._functions.update(unit.functions)
        flow._clients = dict(unit.clients)
        flow._flows = dict(unit.includes)
        flow._types = unit.types
        flow._origin, flow._root, flow._unit = unit.origin, unit.root, unit
        return flow

    # -- the document --------------------------------------------------------------------------

    @property
    def unit(self) -> Unit:
        """The document with its surroundings. Raises: `BuildError` when it is not valid."""
        if self._unit is None or self._parts != _changes_of(self._parts):
            self._unit = self._assembled()
        return self._unit

    @checked_as(InputSignature)  # type: ignore[type-abstract]
    @refuses_unknown_keywords
    def input(
        self,
        name: str,
        type: object = None,  # noqa: A002 - the word of the document
        /,
        *,
        default: object = ...,
        description: str | None = None,
    ) -> Any:
        """Declare an input: a Python type, the name of a type, or a JSON Schema.

        Raises: `DuplicateName` when the name is taken.
        """
        if name in self._level:
            raise DuplicateName(f"`{name}` is taken", hint="give the input another name")
        schema = schema_of(type)
        default = plain(default)
        declared: Any = schema
        if default is not ... or description is not None:
            declared = dict(InputSpec.model_validate(schema).root)
            if description is not None:
                declared["description"] = description
            if default is not ...:
                declared["default"] = default
        self._inputs[name] = declared
        self._level.bound.add(name)
        self._changed()
        return NodeHandle(name, self, type if is_type(type) else None)

    @property
    def params(self) -> In:
        """The handles of all inputs, as fields of the flow's type of inputs.

        Raises: `BuildError` for a flow without one.
        """
        if self._types.inputs is None:
            raise BuildError("the flow has no type of inputs", hint="Flow(name, inputs=In)")
        return cast(In, InputHandles(self._types.inputs, self))

    def output(self, **values: object) -> None:
        """Declare outputs: handles, or values with handles in them."""
        for name, value in values.items():
            if name in self._outputs:
                raise DuplicateName(f"there are two outputs `{name}`", hint="rename one")
            if self._types.result is not None and name not in input_names(self._types.result):
                raise no_field(self._types.result, name, input_names(self._types.result))
            self._outputs[name] = document_value(value, self)
            if has_instances_in(kinds := kinds_of(value)):
                self._types.outputs[name] = kinds
        self._changed()

    # -- checks and runs -----------------------------------------------------------------------

    def check(self, *, tools: ToolRunner | None = None, on: Placement | None = None) -> None:
        """Find defects without running anything: in references, tools, types and models.

        Imports the files and modules that the workflow names. `tools`, `on`: as of `run`. Raises:
        `BuildError`; for a file a `SourceError` with the position; its `__cause__` is the error.
        """
        check_unit(self.unit, Toolset(tools, placement=checked_placement(self.unit, on)))

    async def check_connected(self) -> tuple[str, ...]:
        """Like `check`, with the tools that servers really offer: starts the servers and ends them.

        Returns notes about the servers, such as tools that cannot be used.

        Raises: `BuildError`.
        """
        return await check_connected(self.unit)

    def start(
        self,
        inputs: In | Mapping[str, Any] | None = None,
        /,
        **settings: Unpack[FlowSettings],
    ) -> FlowRun[Out]:
        """Prepare a run: `await run.wait()` carries it out; it can be cancelled and answered.

        Raises: `BuildError`, `InputError`.
        """
        check_keywords("flow.start", settings, SETTINGS, "inputs go into a mapping: start({...})")
        given: dict[str, Any] = {k: v for k, v in settings.items() if v is not None}
        return FlowRun(self.unit, {} if inputs is None else inputs, RunSettings(**given))

    @overload
    async def run(self, inputs: In, /, **settings: Unpack[FlowSettings]) -> FlowResult[Out]: ...
    @overload
    async def run(self, *args: P.args, **values: P.kwargs) -> FlowResult[Out]: ...
    async def run(self, *inputs: Any, **values: Any) -> FlowResult[Out]:
        """Run to the end: `await flow.run(topic="rivers", concurrency=4)`.

        Names of `FlowSettings` are settings, all others are inputs; an input with the name of a
        setting goes into the mapping `inputs`. A failed node does not raise: look at the result.
        Where a question has nobody to answer it, the run is left with the status `asking`: see
        `FlowResult.questions` and `resume`. With `questions="wait"` it logs how to answer.

        Raises: `BuildError`, `InputError`.
        """
        given, settings = split_arguments(inputs_together("flow.run", inputs), values, self.inputs)

        def log_question(event: Event) -> None:
            assert isinstance(event, HumanAsked)
            how = f"`weft answer {run.id} {event.node} ...`" if run.recorded else "`FlowRun.answer`"
            _logger.warning("%s waits: %s: %s (%s)", run.id, event.node, event.question, how)

        settings.setdefault("questions", "pause")
        if settings["questions"] == "wait":
            questions = Subscription(frozenset((HumanAsked,)), log_question)
            settings["listeners"] = (*settings.get("listeners", ()), questions)
        run = self.start(given, **settings)
        return await run.wait()

    @overload
    def stream(
        self, inputs: In, /, **settings: Unpack[FlowSettings]
    ) -> RunStream[FlowRun[Out]]: ...
    @overload
    def stream(self, *args: P.args, **values: P.kwargs) -> RunStream[FlowRun[Out]]: ...
    def stream(self, *inputs: Any, **values: Any) -> RunStream[FlowRun[Out]]:
        """Run, and read what happens: `async for event in flow.stream(topic="rivers")`.

        Arguments as for `run`. The events are the classes of `weft.events`, tokens of models among
        them (`NodeStreamed`); secrets are redacted. Leaving the loop cancels the run. After it,
        `result()` of the stream has the result.

        Raises, with the first event: `BuildError`, `InputError`.
        """
        together = inputs_together("flow.stream", inputs)
        given, settings = split_arguments(together, values, self.inputs)
        others = settings.pop("listeners", ())
        return RunStream(
            lambda listener: self.start(given, listeners=(*others, listener), **settings)
        )

    def resume(
        self,
        run: str = "last",
        /,
        *,
        accept_changes: bool = False,
        confirmed: Mapping[str, Confirmation] | None = None,
        **settings: Unpack[FlowSettings],
    ) -> FlowRun[Out]:
        """Prepare to continue a run that has not ended, or has failed; see `start`.

        Finished nodes do not run again. `run`: an id, or the beginning of one. `accept_changes`:
        this workflow may differ from the recorded one. `confirmed`: a person's decisions about
        calls whose end is unknown, by node. `answers`: to its questions; at one that nobody answers
        it is left again. Settings default to those that the run began with.

        Raises: `BuildError`, `UnknownReference`, `RunBusy`, `WorkflowChanged`, `StoreError`.
        """
        from weft.workflow.history.resume import claim_run, resume_run

        with journal_or_own(settings.get("journal")) as (journal, own):
            claimed = claim_run(
                journal, run, unit=self.unit, accept_changes=accept_changes, confirmed=confirmed
            )
            for note in claimed.history.losses.notes:
                _logger.warning("%s: %s", claimed.run, note)
            settings.setdefault("questions", "pause")
            return cast(FlowRun[Out], resume_run(claimed, own=own, **settings))

    def submit(
        self, inputs: In | Mapping[str, Any] | None = None, /, **settings: Unpack[SubmitSettings]
    ) -> SubmittedRun[Out]:
        """Submit a run to the queue of a journal, for a `Worker`: here, or on another machine.

            run = flow.submit({"topic": "rivers"}, key="order-17", journal="postgresql://...")
            result = await run.result()

        `key` is its id: submitted again with the same inputs, it is the same run. Blocks briefly.

        Raises: `BuildError`, `InputError`, `RunExists` for a key with other inputs, `StoreError`.
        """
        from weft.workflow.queue.submission import submit_flow

        return cast("SubmittedRun[Out]", submit_flow(self.unit, inputs, settings))

    @overload
    def run_sync(self, inputs: In, /, **settings: Unpack[FlowSettings]) -> FlowResult[Out]: ...
    @overload
    def run_sync(self, *args: P.args, **values: P.kwargs) -> FlowResult[Out]: ...
    def run_sync(self, *inputs: Any, **values: Any) -> FlowResult[Out]:
        """Like `run`, without `await`: for scripts and notebooks.

        Inside a running event loop, such as a notebook's, it runs on a thread of its own and blocks
        that loop meanwhile. Write `await flow.run(...)` where you can, and in servers always: a
        client or tool that already works in the running loop cannot answer while it is blocked.
        """
        return run_blocking(lambda: self.run(*inputs, **values))

    # -- inside --------------------------------------------------------------------------------

    def _changed(self) -> None:
        self._unit = None
        self._changes += 1

    def _assembled(self) -> Unit:
        units: dict[AnyFlow, Unit] = {}
        self._assemble(units)
        for unit in units.values():
            check_references(unit)
        check_recursion(units[self])
        self._parts = _changes_of(units)
        return units[self]

    def _assemble(self, units: dict[AnyFlow, Unit]) -> Unit:
        """Add the unit of this flow, and those of the flows that it runs recursively."""
        included: dict[str, Unit] = {}
        unit = units[self] = Unit(
            self._document(),
            self._folder,
            self._root,
            self._origin,
            included,
            dict(self._functions),
            dict(self._clients),
            self._types,
        )
        for _, step in walk(unit.document.nodes):
            if isinstance(step, WorkflowNode) and step.workflow not in included:
                included[step.workflow] = self._part(step.workflow, units)
        return unit

    def _part(self, name: str, units: dict[AnyFlow, Unit]) -> Unit:
        if (part := self._flows.get(name)) is None:
            return load_unit(self._folder / name)
        if isinstance(part, Unit):
            return part
        assert isinstance(part, Flow)
        return units[part] if part in units else part._assemble(units)  # noqa: SLF001 - a `Flow`, too

    def _document(self) -> WorkflowDocument:
        for field in (fields_of(self._types.result) or {}).values():
            if field.default is ... and field.key not in self._outputs:
                hint = f"flow.output({field.key}=...)"
                raise BuildError(f"the flow lacks the output `{field.key}`", hint=hint)
        if self._level.nodes and not self._outputs:
            raise BuildError("the flow has no outputs", hint="write flow.output(answer=...)")
        raw: dict[str, Any] = {
            "name": self._name,
            "description": self._description,
            "inputs": self._inputs,
            "models": self._models,
            "tools": self._tools,
            "state": self._state,
            "optimise": self._optimise,
            "run": self._limits,
            "nodes": self._level.nodes,
            "outputs": self._outputs,
        }
        raw = {key: value for key, value in raw.items() if value or key in ("nodes", "outputs")}
        try:
            return WorkflowDocument.model_validate(raw)
        except ValidationError as error:
            defect = first_defect(error, raw)
            raise BuildError(defect.message, hint=defect.hint) from error


def _changes_of(flows: Iterable[AnyFlow]) -> dict[AnyFlow, int]:
    """How often each of `flows` has been changed."""
    return {flow: flow._changes for flow in flows}  # noqa: SLF001 - a `Flow`


_FLOW_KEYWORDS = ("inputs", "outputs", "description", "models", "tools", "state", "folder")
