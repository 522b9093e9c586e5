"""Workflows checked and compiled once for all runs of them; the check of what a run needs.

What is kept holds as long as tools, functions and files are what they were: each run asks for them
anew, and compares.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from platformdirs import user_cache_path

from weft.agents.tools import tool_logs
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
from weft.workflow.document.check.types import TypeChecker
from weft.workflow.document.expressions import ValueTemplate
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.spec.document import walk
from weft.workflow.document.spec.nodes import ToolNode
from weft.workflow.document.tool_servers import check_source, sources_in
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.models.factory import ModelSource, check_models
from weft.workflow.runtime.results.result import output_templates
from weft.workflow.runtime.tools.functions import Function, build_error
from weft.workflow.runtime.tools.toolset import Toolset


def needs_store(unit: Unit) -> bool:
    """Whether a node of the workflow keeps anything between runs."""
    return any(_keeps(included.document) for included in unit.everything())


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


_KEPT: Final = 4
"""So many forms of one workflow: with other tools, of other code, recorded or not."""


class ToolSnapshot:
    """Implements `KnownTools`: what was said when a workflow was checked with `tools`."""

    def __init__(self, tools: Toolset) -> None:
        self._specs: dict[tuple[Unit, str], ToolSpec] = {}
        self._functions: dict[tuple[Unit, str], Function] = {}
        self._slots: dict[tuple[Unit, str], str | None] = {}
        self._tools: Toolset | None = tools
        self._named: frozenset[str] = frozenset()

    @property
    def resources(self) -> Mapping[tuple[Unit, str], str | None]:
        """The class of slots that a call of each tool takes."""
        return self._slots

    def spec(self, unit: Unit, text: str) -> ToolSpec:
        """See `Toolset.spec`."""
        assert self._tools is not None
        found = self._specs[unit, text] = self._tools.spec(unit, text)
        return found

    def function(self, unit: Unit, reference: str) -> Function:
        """See `Toolset.function`."""
        assert self._tools is not None
        found = self._functions[unit, reference] = self._tools.function(unit, reference)
        return found

    def close(self, unit: Unit) -> None:
        """Ask for the rest: what the tools of all nodes take. Nothing is asked after this."""
        assert self._tools is not None
        for included in unit.everything():
            for _, step in walk(included.document.nodes):
                for choice in step.choices if isinstance(step, ToolNode) else ():
                    key = included, choice.tool
                    if key not in self._slots:
                        self._slots[key] = self._tools.resource(*key)
        self._named = self._tools.resources
        self._tools = None

    def hold(self, tools: Toolset) -> bool:
        """Whether `tools` say the same."""
        try:
            return (
                all(tools.spec(*key) == known for key, known in self._specs.items())
                and all(tools.function(*key) is known for key, known in self._functions.items())
                and all(tools.resource(*key) == known for key, known in self._slots.items())
                and tools.resources == self._named
            )
        except WeftError:
            return False  # the check says where


class CheckedFlow:
    """A workflow whose nodes fit each other, as far as its tools are what they were then.

    Raises: `BuildError` for what is wrong with it.
    """

    def __init__(self, unit: Unit, tools: Toolset) -> None:
        self._unit = unit
        self.tools = ToolSnapshot(tools)
        TypeChecker(unit, self.tools).check()
        _check_limits(unit, tools)
        self.tools.close(unit)
        self._compiled: list[CompiledFlow] = []

    def compiled(self, digests: SourceDigests | None) -> CompiledFlow:
        """The workflow compiled; recorded with `digests` for the code that it is made of."""
        code = CodeDigests()
        for known in self._compiled:
            if known.holds(digests, code):
                return known
        made = CompiledFlow(self._unit, self.tools, digests)
        self._compiled = [made, *self._compiled[: _KEPT - 1]]
        return made


def check_flow(unit: Unit, tools: Toolset) -> CheckedFlow:
    """The workflow with these tools, checked unless it was before. Raises: `BuildError`."""
    memo = unit.memo
    for known in memo.checked:
        flow: CheckedFlow = known
        if flow.tools.hold(tools):
            return flow
    made = CheckedFlow(unit, tools)
    memo.checked[:] = [made, *memo.checked[: _KEPT - 1]]
    return made


class CompiledFlow:
    """The graph of a workflow, to which each run binds its inputs; and what a record says of it.

    `outputs`: the templates of the outputs. `sources`: see `sources_of`; empty without `digests`.
    `needs_store`: whether a node keeps anything between runs.
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
        self.sources: Mapping[str, str] = {}
        self._redacted: tuple[Redactor, Mapping[str, str]] | None = None
        self._digests = digests

    def holds(self, digests: SourceDigests | None, code: CodeDigests) -> bool:
        """Whether the code is what it was, and it is to be recorded as it was then."""
        if (digests is None) != (self._recorded is None) or not self._cached.hold(code):
            return False
        return digests is None or self._recorded is None or self._recorded.hold(digests)

    def redacted_sources(self, redactor: Redactor) -> Mapping[str, str]:
        """`sources` as they may be kept."""
        known = self._redacted
        if known is None or known[0] is not redactor:
            known = self._redacted = redactor, redactor.redact(dict(self.sources))
        return known[1]

    def graph(self, inputs: Mapping[str, Any]) -> Graph:
        """The graph of a run with these inputs, which `check_inputs` has completed."""
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
        graph = Graph(self._unit.document.name, nodes, kept_nodes(self._unit))
        if self._digests is not None:  # all of them have been asked for now
            self.sources = source_texts(self._unit, self._digests)
        self._bound, self._names = tuple(bound), names.of_run({})
        self._graph = graph.rebound(unbound)
        return graph


async def _unbound(context: NodeContext, inputs: Inputs) -> Any:
    """Stands where each run has a node of its own."""
    raise AssertionError((context.node, inputs))


def _check_limits(unit: Unit, tools: Toolset) -> None:
    resources = [*unit.document.models, *unit.document.tools, *tools.resources]
    for name in unit.document.run.limits:
        if name not in resources:
            hint = choice_hint(name, resources) or "it has no models and no tools"
            error = UnknownReference(f"there is no model or tool called `{name}`", hint=hint)
            unit.fail(error, ("run", "limits", name), at_key=True)


def check_unit(
    unit: Unit, tools: Toolset, models: Mapping[str, ModelClient] | ModelSource | None = None
) -> CheckedFlow:
    """Import the tools of `unit` and check types, models and limits. Raises: `BuildError`.

    What a given source of models makes of declarations is not checked. Models and servers depend on
    this process and its environment, and are checked every time; the rest where it has changed.
    """
    for included in unit.everything():
        for name in sources_in(included):
            if not tools.replaces(name):
                check_source(included, name)
        if models is None or isinstance(models, Mapping):
            check_models(included, models or ())
    return check_flow(unit, tools)


async def check_connected(unit: Unit) -> tuple[str, ...]:
    """Like `check_unit`, with the tools that servers really offer: starts and ends them.

    Returns what there is to say of servers, such as tools that cannot be used.

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
