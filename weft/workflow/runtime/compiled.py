"""Workflows checked and compiled once for all of their runs; the check of what a run needs.

A compiled workflow is reused while its tools, functions and files are unchanged: each run compares
them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from platformdirs import user_cache_path

from weft.agents.tools import tool_logs
from weft.agents.tools.toolbox import ToolSettings
from weft.cluster.settings import Placement
from weft.core.errors import BuildError, ToolError, UnknownReference, WeftError
from weft.core.ports import ModelClient, ResultStore
from weft.core.redaction import Redactor
from weft.core.values import ToolSpec
from weft.durability.result_store import SqliteStore
from weft.engine import Graph
from weft.engine.graph.node import Inputs, Node, NodeContext
from weft.workflow.compile import Compiler, NameBindings
from weft.workflow.compile.compiler import kept_nodes
from weft.workflow.compile.identity import CodeDigests, DigestSnapshot
from weft.workflow.compile.node_plan import is_shared, mentioned_names
from weft.workflow.compile.sources import SourceDigests, source_texts
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.check.pools import check_pools
from weft.workflow.document.check.schedules import check_schedules
from weft.workflow.document.check.types import TypeChecker
from weft.workflow.document.defect_log import DefectLog
from weft.workflow.document.expressions import ValueTemplate
from weft.workflow.document.loader import load_partly, load_text_partly
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.spec.document import walk
from weft.workflow.document.spec.nodes import ModelNode, ToolNode
from weft.workflow.document.tool_servers import check_source, sources_in
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.models.factory import ModelSource, check_models
from weft.workflow.runtime.models.local_names import check_local_names
from weft.workflow.runtime.results.result import output_templates
from weft.workflow.runtime.tools.functions import Function, build_error
from weft.workflow.runtime.tools.placement import placement_of
from weft.workflow.runtime.tools.toolset import Toolset


def needs_store(unit: Unit) -> bool:
    """Whether a node of the workflow stores results between runs."""
    return any(_keeps(included.document) for included in unit.everything())


def has_conversations(unit: Unit) -> bool:
    """Whether a node of the workflow has a conversation."""
    steps = (step for each in unit.everything() for _, step in walk(each.document.nodes))
    return any(isinstance(step, ModelNode) and step.conversation is not None for step in steps)


def default_store() -> ResultStore:
    """A store in the user's cache folder (`WEFT_HOME`, if set)."""
    home = Path(os.environ.get("WEFT_HOME") or user_cache_path("weft"))
    home.mkdir(parents=True, exist_ok=True)
    return SqliteStore(home / "results.sqlite")


def _keeps(document: WorkflowDocument) -> bool:
    """True when a node has a cache, or tools to choose among."""
    steps = [step for _, step in walk(document.nodes)]
    chooses = any(isinstance(step, ToolNode) and step.alternatives for step in steps)
    return chooses or any(step.cache is not None for step in steps)


_MOST_FORMS: Final = 4
"""Compiled forms of one workflow: with other tools, of other code, recorded or not."""


class ToolSnapshot:
    """Implements `ToolLookup`: the specs with which a workflow was checked, for comparison."""

    def __init__(self, tools: Toolset) -> None:
        self._specs: dict[tuple[Unit, str], ToolSpec] = {}
        self._functions: dict[tuple[Unit, str], Function] = {}
        self._slots: dict[tuple[Unit, str], ToolSettings] = {}
        self._pools: dict[str, str] = {}
        self._placed: dict[tuple[Unit, str, str], None] = {}
        self._tools: Toolset | None = tools
        self._named: frozenset[str] = frozenset()

    @property
    def resources(self) -> Mapping[tuple[Unit, str], ToolSettings]:
        """The resource class and the retry of each tool."""
        return self._slots

    def spec(self, unit: Unit, text: str) -> ToolSpec:
        """See `Toolset.spec`."""
        assert self._tools is not None
        spec = self._specs[unit, text] = self._tools.spec(unit, text)
        return spec

    def function(self, unit: Unit, reference: str) -> Function:
        """See `Toolset.function`."""
        assert self._tools is not None
        function = self._functions[unit, reference] = self._tools.function(unit, reference)
        return function

    def check_pool(self, on: str, what: str) -> None:
        """See `Toolset.check_pool`."""
        assert self._tools is not None
        self._tools.check_pool(on, what)
        self._pools[on] = what

    def place(self, unit: Unit, text: str, on: str) -> None:
        """See `Toolset.place`."""
        assert self._tools is not None
        self._tools.place(unit, text, on)
        self._placed[unit, text, on] = None

    def close(self, unit: Unit) -> None:
        """Complete the snapshot with the resources of all tools; no lookups after this."""
        assert self._tools is not None
        for included in unit.everything():
            for _, step in walk(included.document.nodes):
                for choice in step.choices if isinstance(step, ToolNode) else ():
                    key = included, choice.tool
                    if key not in self._slots:
                        self._slots[key] = self._tools.settings(*key)
        self._named = self._tools.resources
        self._tools = None

    def hold(self, tools: Toolset) -> bool:
        """Whether `tools` still gives the same. Places them as they were placed."""
        try:
            for pool in self._pools.items():
                tools.check_pool(*pool)
            for placed in self._placed:
                tools.place(*placed)
            return (
                all(tools.spec(*key) == spec for key, spec in self._specs.items())
                and all(
                    tools.function(*key) is function for key, function in self._functions.items()
                )
                and all(tools.settings(*key) == slot for key, slot in self._slots.items())
                and tools.resources == self._named
            )
        except WeftError:
            return False  # the check reports where


class CheckedFlow:
    """A workflow whose nodes fit each other, checked with a snapshot of its tools.

    Raises: `BuildError` for its defects.
    """

    def __init__(self, unit: Unit, tools: Toolset, log: DefectLog) -> None:
        self._unit = unit
        self.tools = ToolSnapshot(tools)
        TypeChecker(unit, self.tools, log=log).check()
        check_pools(unit, self.tools, log)
        with log:
            check_limits(unit, tools, unit.document.run.limits)
        log.finish()
        self.tools.close(unit)
        self._compiled: list[CompiledFlow] = []

    def compiled(self, digests: SourceDigests | None) -> CompiledFlow:
        """The compiled workflow; with `digests`, its nodes are recorded with them."""
        code = CodeDigests()
        for compiled in self._compiled:
            if compiled.holds(digests, code):
                return compiled
        made = CompiledFlow(self._unit, self.tools, digests)
        self._compiled = [made, *self._compiled[: _MOST_FORMS - 1]]
        return made


def check_flow(unit: Unit, tools: Toolset, log: DefectLog | None = None) -> CheckedFlow:
    """The workflow checked with these tools, from a cache if possible.

    Raises: `BuildError` with all defects, those in `log` too.
    """
    log = DefectLog() if log is None else log
    memo = unit.memo
    for cached in memo.checked:
        flow: CheckedFlow = cached
        if flow.tools.hold(tools):
            log.finish()
            return flow
    made = CheckedFlow(unit, tools, log)
    memo.checked[:] = [made, *memo.checked[: _MOST_FORMS - 1]]
    return made


class CompiledFlow:
    """The graph of a workflow, to which each run binds its inputs.

    `outputs`: the templates of the outputs. `sources`: see `source_texts`; empty without `digests`.
    `needs_store`: whether a node stores results between runs. `has_conversations`: or messages.
    """

    def __init__(self, unit: Unit, tools: ToolSnapshot, digests: SourceDigests | None) -> None:
        self._unit = unit
        self._recorded = None if digests is None else DigestSnapshot(digests)
        self._cached = DigestSnapshot(CodeDigests())
        self._compiler = Compiler(unit, tools.resources, self._recorded, self._cached)
        self._graph: Graph | None = None
        self._bound: tuple[tuple[int, str], ...] = ()
        self._names = NameBindings()
        self.outputs: Mapping[str, ValueTemplate] = output_templates(unit.document)
        self.needs_store = needs_store(unit)
        self.has_conversations = has_conversations(unit)
        self.sources: Mapping[str, str] = {}
        self._redacted: tuple[Redactor, Mapping[str, str]] | None = None
        self._digests = digests

    def holds(self, digests: SourceDigests | None, code: CodeDigests) -> bool:
        """Whether the code is unchanged, and `digests` are given or absent as then."""
        if (digests is None) != (self._recorded is None) or not self._cached.hold(code):
            return False
        return digests is None or self._recorded is None or self._recorded.hold(digests)

    def redacted_sources(self, redactor: Redactor) -> Mapping[str, str]:
        """`sources` without secrets."""
        cached = self._redacted
        if cached is None or cached[0] is not redactor:
            cached = self._redacted = redactor, redactor.redact(dict(self.sources))
        return cached[1]

    def graph(self, inputs: Mapping[str, Any]) -> Graph:
        """The graph of a run with these inputs, completed by `check_inputs`."""
        if self._graph is None:
            return self._compile(inputs)
        if not self._bound:
            return self._graph
        nodes: dict[int, Node] = {}
        names = self._names.of_run(inputs)
        for place, name in self._bound:
            made = self._compiler.of_step(name, self._unit.document.nodes, names)
            nodes.update(enumerate(made, place))
        return self._graph.rebound(nodes)

    def _compile(self, inputs: Mapping[str, Any]) -> Graph:
        steps = self._unit.document.nodes
        names = self._compiler.names(steps, NameBindings.of_inputs(inputs))
        nodes: list[Node] = []
        bound: list[tuple[int, str]] = []
        unbound: dict[int, Node] = {}
        for name in self._compiler.level(steps).running:
            place, step = len(nodes), steps[name]
            made = self._compiler.of_step(name, steps, names)
            nodes += made
            if not is_shared(step) or not mentioned_names(step).isdisjoint(inputs):
                bound.append((place, name))
                unbound.update((at, Node(n.id, _unbound)) for at, n in enumerate(made, place))
        nodes += self._compiler.end(steps, names)
        graph = Graph(self._unit.document.name, nodes, kept_nodes(self._unit))
        if self._digests is not None:  # complete now
            self.sources = source_texts(self._unit, self._digests)
        self._bound, self._names = tuple(bound), names.of_run({})
        self._graph = graph.rebound(unbound)
        return graph


async def _unbound(context: NodeContext, inputs: Inputs) -> Any:
    """Placeholder for a node that each run has of its own."""
    raise AssertionError((context.node, inputs))


def check_limits(unit: Unit, tools: Toolset, limits: Iterable[str]) -> None:
    """Raises: `UnknownReference` for a limit of what is no model, tool or resource of `unit`."""
    included = [each.document for each in unit.everything()]
    resources = [name for each in included for name in (*each.models, *each.tools)]
    resources += tools.resources
    for name in limits:
        if name not in resources:
            hint = choice_hint(name, resources) or "it has no models and no tools"
            error = UnknownReference(f"there is no model or tool called `{name}`", hint=hint)
            unit.fail(error, ("run", "limits", name), at_key=True)


def check_unit(
    unit: Unit,
    tools: Toolset,
    models: Mapping[str, ModelClient] | ModelSource | None = None,
    log: DefectLog | None = None,
) -> CheckedFlow:
    """Import the tools of `unit` and check types, models and limits. Raises: `BuildError`.

    With a `ModelSource`, declarations of models are not checked. Models and servers depend on this
    process and its environment and are checked every time; the rest only after changes. `log` has
    the defects that were found before.
    """
    log = DefectLog() if log is None else log
    for included in unit.everything():
        for name in sources_in(included):
            if not tools.replaces(name):
                with log:
                    check_source(included, name)
        if models is None or isinstance(models, Mapping):
            check_models(included, models or (), log)
    return check_flow(unit, tools, log)


def check_file(path: Path, on: Placement | None = None) -> Unit:
    """Load and check a workflow file in one pass, for a run on `on`.

    Raises: `SourceError` for the first defect, which has all in `defects`.
    """
    return _whole(*load_partly(path), on)


def check_text(text: str, path: Path) -> Unit:
    """As `check_file`, for the text that the file is to have."""
    return _whole(*load_text_partly(text, path), None)


def _whole(unit: Unit, log: DefectLog, on: Placement | None) -> Unit:
    if all(_leaves_a_whole(error.path) for error in log.found):
        for included in unit.everything():
            check_local_names(included, log)
        check_schedules(unit, log)
        check_unit(unit, Toolset(placement=placement_of(unit, on)), log=log)
    log.finish()
    return unit


def _leaves_a_whole(path: tuple[str | int, ...]) -> bool:
    """Whether the rest of a workflow can be checked without what has a defect there."""
    declared = len(path) > 1 and path[0] in ("inputs", "models", "tools")
    return not path or declared or path[0] in ("nodes", "outputs", "schedule")


async def check_connected(unit: Unit) -> tuple[str, ...]:
    """Like `check_unit`, with the tools that servers really offer: starts and ends them.

    Returns notes about the servers, such as tools that cannot be used.

    Raises: `BuildError`.
    """
    tools = Toolset()
    notes: list[str] = []
    try:
        for included in unit.everything():
            for name in sources_in(included):
                try:
                    with tool_logs(notes.append):
                        await tools.start(included, name)
                except (ToolError, BuildError) as error:
                    origin = included.document.tools[name].origin
                    included.fail(build_error(error), ("tools", name, origin), at_key=True)
        check_unit(unit, tools)
    finally:
        await tools.aclose()
    return tuple(notes)
