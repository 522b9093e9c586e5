"""A workflow, written in Python or read from a file: check it, run it, draw it, write it out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import ValidationError

from weft.core.errors import BuildError, DuplicateName, InputError
from weft.core.events import Event, HumanAsked, Subscription
from weft.core.keywords import check_keywords, expect, refuses_unknown_keywords
from weft.core.loggers import logger
from weft.core.ports import ModelClient, ToolRunner
from weft.core.suggestion import closest
from weft.durability.calls import Confirmation
from weft.workflow.document import NodeSpec, WorkflowDocument
from weft.workflow.document.inputs import coerce_inputs
from weft.workflow.document.loader import load_text, load_unit
from weft.workflow.document.recursion import check_recursion
from weft.workflow.document.references import check_references
from weft.workflow.document.spec.declarations import InputSpec
from weft.workflow.document.spec.defects import first_defect
from weft.workflow.document.spec.document import walk
from weft.workflow.document.spec.nodes import ToolNode, WorkflowNode
from weft.workflow.document.unit import ONLY_PYTHON, DocumentOrigin, Unit, node_name
from weft.workflow.document.writer import check_portable, to_yaml
from weft.workflow.flow.builder import FlowBuilder
from weft.workflow.flow.handle import Handle
from weft.workflow.flow.python_values import document_value, schema_of
from weft.workflow.runtime.blocking import run_blocking
from weft.workflow.runtime.compiled import check_connected, check_unit
from weft.workflow.runtime.journals import journal_or_own
from weft.workflow.runtime.options import FlowLimits, FlowSettings, RunSettings
from weft.workflow.runtime.results.result import FlowResult
from weft.workflow.runtime.results.run_stream import RunStream
from weft.workflow.runtime.run import FlowRun
from weft.workflow.runtime.tools.toolset import Toolset

if TYPE_CHECKING:
    from weft.workflow.document.graph_view import GraphView

_logger = logger("runs")


class Flow(FlowBuilder):
    """A workflow.

        flow = Flow("brief", models={"small": "local:smollm2-135m-instruct"})
        topic = flow.input("topic", str)
        hits = flow.tool(search, topic, limit=5)
        notes = flow.map(hits, lambda hit: flow.model("small", f"Summarise: {hit.text}"))
        flow.output(notes=notes)
        result = await flow.run(topic="rivers")

    `models`: declarations as in a file, or clients. `tools`: functions or import paths by name.
    `folder`: the base of relative paths (default: the working directory).

    Raises: `BuildError` when a declaration is wrong.
    """

    def __init__(
        self,
        name: str,
        *,
        description: str | None = None,
        models: Mapping[str, str | Mapping[str, object] | ModelClient] | None = None,
        tools: Mapping[str, str | Mapping[str, object] | Callable[..., Any]] | None = None,
        folder: str | Path | None = None,
        **limits: Unpack[FlowLimits],
    ) -> None:
        check_keywords("Flow", limits, (*_FLOW_KEYWORDS, *FlowLimits.__annotations__))
        expect(name, str, "the name of a flow is a text", 'Flow("brief")')
        for key, section in (("models", models or {}), ("tools", tools or {})):
            hint = f'write {key}={{"small": ...}}'
            expect(section, Mapping, f"`{key}` maps names to declarations", hint)
        super().__init__((Path(folder) if folder is not None else Path.cwd()).resolve())
        self._name = name
        self._description = description
        self._limits = {key: document_value(value, self) for key, value in limits.items()}
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}
        self._models: dict[str, Any] = {}
        self._origin: DocumentOrigin | None = None
        self._root = self._folder
        self._unit: Unit | None = None
        self._changes = 0
        self._parts: dict[Flow, int] = {}  # the flows in `_unit`, each with its changes then
        for model, declared in (models or {}).items():
            self._declare_model(model, declared)
        for tool, use in (tools or {}).items():
            self._tools[tool] = self._reference(use) if callable(use) else use

    @classmethod
    def of(cls, unit: Unit) -> Flow:
        """The workflow of a checked document."""
        document = unit.document
        flow = cls(document.name, description=document.description, folder=unit.folder)
        flow._limits = document.run.model_dump(by_alias=True, exclude_unset=True)
        flow._inputs = {name: declared.root for name, declared in document.inputs.items()}
        raw = document.model_dump(by_alias=True, exclude_unset=True)
        flow._models = dict(raw.get("models", {}))
        flow._tools = dict(raw.get("tools", {}))
        flow._level.nodes = dict(document.nodes)
        flow._level.bound = set(document.inputs)
        flow._outputs = dict(document.outputs)
        flow._functions.update(unit.functions)
        flow._clients = dict(unit.clients)
        flow._flows = dict(unit.includes)
        flow._origin, flow._root, flow._unit = unit.origin, unit.root, unit
        return flow

    # -- the document --------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self._name

    @property
    def description(self) -> str:
        """One sentence for people."""
        return self._description or ""

    @property
    def inputs(self) -> Mapping[str, InputSpec]:
        """The inputs, by name."""
        return self.document.inputs

    @property
    def nodes(self) -> Mapping[str, NodeSpec]:
        """The nodes at the top, by name."""
        return self.document.nodes

    @property
    def alternatives(self) -> Mapping[str, Sequence[str]]:
        """The alternative tools of nodes, by the path of the node."""
        steps = ((node_name(path), step) for path, step in walk(self.document.nodes))
        return {
            str(name): [other.tool for other in step.alternatives]
            for name, step in steps
            if isinstance(step, ToolNode) and step.alternatives
        }

    @property
    def outputs(self) -> Mapping[str, Any]:
        """The outputs, by name: values with templates."""
        return self.document.outputs

    @property
    def document(self) -> WorkflowDocument:
        """The whole workflow as one frozen value. Raises: `BuildError` when it is not complete."""
        return self.unit.document

    @property
    def unit(self) -> Unit:
        """The document with its surroundings. Raises: `BuildError` when it is not valid."""
        if self._unit is None or self._parts != _changes_of(self._parts):
            self._unit = self._assembled()
        return self._unit

    @refuses_unknown_keywords
    def input(
        self,
        name: str,
        type: object = None,  # noqa: A002 - the word of the document
        /,
        *,
        default: object = ...,
        description: str | None = None,
    ) -> Handle:
        """Declare an input: a Python type, the name of a type, or a JSON Schema.

        Raises: `DuplicateName` when the name is taken.
        """
        if name in self._level:
            raise DuplicateName(f"`{name}` is taken", hint="give the input another name")
        schema = schema_of(type)
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
        return Handle(name, self)

    def output(self, **values: object) -> None:
        """Declare outputs: handles, or values with handles in them."""
        for name, value in values.items():
            if name in self._outputs:
                raise DuplicateName(f"there are two outputs `{name}`", hint="rename one")
            self._outputs[name] = document_value(value, self)
        self._changed()

    # -- checks and runs -----------------------------------------------------------------------

    def check(self, *, tools: ToolRunner | None = None) -> None:
        """Find defects without running anything: in references, tools, types and models.

        Imports the Python files and modules that the workflow names. Raises: `BuildError`; for a
        file a `SourceError` with the position, whose `__cause__` is the particular error.
        """
        check_unit(self.unit, Toolset(tools))

    async def check_connected(self) -> tuple[str, ...]:
        """Like `check`, with the tools that servers really offer: starts the servers and ends them.

        Returns notes about the servers, such as tools that cannot be used.

        Raises: `BuildError`.
        """
        return await check_connected(self.unit)

    def start(
        self, inputs: Mapping[str, Any] | None = None, /, **settings: Unpack[FlowSettings]
    ) -> FlowRun:
        """Prepare a run: `await run.wait()` carries it out; it can be cancelled and answered.

        Raises: `BuildError`, `InputError`.
        """
        check_keywords("flow.start", settings, _SETTINGS, "inputs go into a mapping: start({...})")
        given: dict[str, Any] = {k: v for k, v in settings.items() if v is not None}
        return FlowRun(self.unit, inputs or {}, RunSettings(**given))

    async def run(self, inputs: Mapping[str, Any] | None = None, /, **values: Any) -> FlowResult:
        """Run to the end: `await flow.run(topic="rivers", concurrency=4)`.

        Names of `FlowSettings` are settings, all others are inputs; an input with the name of a
        setting goes into the mapping `inputs`. A failed node does not raise: look at the result.
        Where a question has nobody to answer it, the run is left with the status `asking`: see
        `FlowResult.questions` and `resume`. With `questions="wait"` it logs how to answer.

        Raises: `BuildError`, `InputError`.
        """
        given, settings = _split(inputs, values, self.inputs)

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

    def stream(
        self, inputs: Mapping[str, Any] | None = None, /, **values: Any
    ) -> RunStream[FlowRun]:
        """Run, and read what happens: `async for event in flow.stream(topic="rivers")`.

        Arguments as for `run`. The events are the classes of `weft.events`, tokens of models among
        them (`NodeStreamed`); secrets are redacted. Leaving the loop cancels the run. After it,
        `result()` of the stream has the result.

        Raises, with the first event: `BuildError`, `InputError`.
        """
        given, settings = _split(inputs, values, self.inputs)
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
    ) -> FlowRun:
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
            return resume_run(claimed, own=own, **settings)

    def run_sync(self, inputs: Mapping[str, Any] | None = None, /, **values: Any) -> FlowResult:
        """Like `run`, without `await`: for scripts and notebooks.

        Inside a running event loop, such as a notebook's, it runs on a thread of its own and blocks
        that loop meanwhile. Write `await flow.run(...)` where you can, and in servers always: a
        client or tool that already works in the running loop cannot answer while it is blocked.
        """
        return run_blocking(lambda: self.run(inputs, **values))

    def coerce_inputs(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Texts, as from a command line, converted to the types that the inputs declare.

        Raises: `InputError` with every text that cannot be read.
        """
        return coerce_inputs(self.document, given)

    # -- views ---------------------------------------------------------------------------------

    def to_yaml(self) -> str:
        """The workflow as a file, which `weft.loads` reads back as an equal workflow.

        Raises: `BuildError` when it uses functions or clients that no file can name.
        """
        check_portable(self.unit)
        return to_yaml(self.document)

    def graph_view(self) -> GraphView:
        """The graph for drawing: nodes and edges, with bodies as groups inside nodes."""
        from weft.workflow.document.graph_view import graph_view

        return graph_view(self.document)

    def mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        from weft.workflow.document.graph_view import mermaid

        return mermaid(self.graph_view())

    # -- inside --------------------------------------------------------------------------------

    def _changed(self) -> None:
        self._unit = None
        self._changes += 1

    def _declare_model(self, name: str, declared: Any) -> None:
        if isinstance(declared, (str, Mapping)):
            self._models[name] = declared
            return
        self._clients[name] = declared
        self._models[name] = {"use": f"{ONLY_PYTHON}client", "model": declared.model}

    def _assembled(self) -> Unit:
        units: dict[Flow, Unit] = {}
        self._assemble(units)
        for unit in units.values():
            check_references(unit)
        check_recursion(units[self])
        self._parts = _changes_of(units)
        return units[self]

    def _assemble(self, units: dict[Flow, Unit]) -> Unit:
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
        )
        for _, step in walk(unit.document.nodes):
            if isinstance(step, WorkflowNode) and step.workflow not in included:
                included[step.workflow] = self._part(step.workflow, units)
        return unit

    def _part(self, name: str, units: dict[Flow, Unit]) -> Unit:
        part = self._flows.get(name)
        if part is None:
            return load_unit(self._folder / name)
        if isinstance(part, Unit):
            return part
        assert isinstance(part, Flow)
        return units[part] if part in units else part._assemble(units)  # noqa: SLF001 - a `Flow`, too

    def _document(self) -> WorkflowDocument:
        raw: dict[str, Any] = {
            "name": self._name,
            "description": self._description,
            "inputs": self._inputs,
            "models": self._models,
            "tools": self._tools,
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


def _changes_of(flows: Iterable[Flow]) -> dict[Flow, int]:
    """How often each of `flows` has been changed."""
    return {flow: flow._changes for flow in flows}  # noqa: SLF001 - a `Flow`


_SETTINGS = frozenset(FlowSettings.__annotations__)
_FLOW_KEYWORDS = ("description", "models", "tools", "folder")


def _split(
    inputs: Mapping[str, Any] | None, values: Mapping[str, Any], declared: Collection[str]
) -> tuple[dict[str, Any], Any]:
    """The inputs and the settings of a run among its keywords.

    Raises: `InputError` for a misspelt setting; `check_inputs` refuses other names.
    """
    expect(inputs or {}, Mapping, "inputs are a mapping", "write flow.run(topic=...)")
    settings = {key: value for key, value in values.items() if key in _SETTINGS}
    named = {key: value for key, value in values.items() if key not in _SETTINGS}
    for name in named:
        near = None if name in declared else closest(name, (*declared, *_SETTINGS))
        if near in _SETTINGS:
            raise InputError(f"there is no input `{name}`", hint=f"did you mean `{near}`?")
    listeners = settings.get("listeners", ())
    expect(listeners, Iterable, "`listeners` is a list", "listeners=[print]")
    return {**(inputs or {}), **named}, settings


def load(path: str | Path) -> Flow:
    """The workflow in a file. Imports no tools: see `Flow.check`.

    Raises: `SourceError`, with file, line, column and a hint, for every defect.
    """
    return Flow.of(load_unit(Path(path)))


def check(path: str | Path) -> Flow:
    """Load and check a workflow file in one pass: keys, names, types, tools and models.

    Imports the Python files and modules that it names.

    Raises: `SourceError` for the first defect; its `defects` are all of them, in order.
    """
    from weft.workflow.runtime.compiled import check_file as checked

    return Flow.of(checked(Path(path)))


def loads(text: str, file: str = "<text>") -> Flow:
    """The workflow in a text; relative paths are relative to the folder of `file`.

    Raises: `SourceError`, with file, line, column and a hint, for every defect.
    """
    return Flow.of(load_text(text, file))
