"""Type checks: paths into values, arguments of tools and of included workflows.

Works on schemas alone, and reports only what is certain. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from graphlib import TopologicalSorter

from weft.core.errors import BuildError, ToolError, TypeMismatch
from weft.core.schema import at, mismatch
from weft.core.values import JsonSchema, ToolSpec
from weft.workflow.document import Block, Body, NodeSpec
from weft.workflow.document.breaks import breaks_of
from weft.workflow.document.check.arguments import (
    INTEGER,
    LIST,
    STRING,
    CalleeParameters,
    check_arguments,
    check_call,
    check_writes,
    element,
    infer,
    is_part,
)
from weft.workflow.document.check.cases import check_cases
from weft.workflow.document.defect_log import DefectLog
from weft.workflow.document.expressions import value_template
from weft.workflow.document.remedies import existing_part
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.document import NodeBody, bodies
from weft.workflow.document.spec.nodes import (
    AskNode,
    BaseNode,
    BranchNode,
    CallNode,
    JoinNode,
    LoopNode,
    MapNode,
    ModelNode,
    ReduceNode,
    ToolNode,
    ValueNode,
    WorkflowNode,
)
from weft.workflow.document.spec.state import state_schema
from weft.workflow.document.state_order import STATE
from weft.workflow.document.templates import TemplateUse, all_names, template_uses, uses_of
from weft.workflow.document.tool_servers import source_of
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.tools.functions import Function, build_error
from weft.workflow.runtime.tools.toolset import ToolLookup


@dataclass(slots=True)
class ScopeSchemas:
    """The schemas of the names of one level, computed on demand."""

    outer: ScopeSchemas | None = None
    own: dict[str, Callable[[], JsonSchema | None]] = field(default_factory=dict)

    def look(self, name: str) -> JsonSchema | None:
        """The schema of a name; None: unknown."""
        if name in self.own:
            return self.own[name]()
        return self.outer.look(name) if self.outer is not None else None


class TypeChecker:
    """The types of one document. Imports its tools through `tools`."""

    def __init__(
        self,
        unit: Unit,
        tools: ToolLookup,
        others: dict[Unit, TypeChecker] | None = None,
        log: DefectLog | None = None,
    ) -> None:
        self._unit = unit
        self._log = DefectLog() if log is None else log
        self._tools = tools
        self._types: dict[KeyPath, JsonSchema | None] = {}
        self._others = {} if others is None else others
        self._others[unit] = self
        self._outputs: JsonSchema | None = None
        self._checked = False

    def check(self) -> None:
        """Check this document and the files it includes, once; defects go to the log."""
        if self._checked:
            return
        self._checked = True
        for name, declared in self._unit.document.tools.items():
            if not declared.is_source:
                with self._log:
                    self._spec(name, ("tools", name, "use"))
        scope = self._top()
        self._check_nodes(self._unit.document.nodes, ("nodes",), scope)
        for name, value in self._unit.document.outputs.items():
            for use in uses_of(value):
                with self._log:
                    self._check_paths(use, ("outputs", name), scope)

    def outputs(self) -> JsonSchema:
        """The schema of the mapping of all outputs.

        Where the workflow runs itself, only the names of outputs are known inside at first.
        """
        if self._outputs is None:
            outputs = self._unit.document.outputs
            self._outputs = infer(value_template(outputs), _unknown)
            self._outputs = infer(value_template(outputs), self._top().look) or {}
            if self._unit.runs_itself:
                self._types.clear()
        return self._outputs or {}

    # -- scopes --------------------------------------------------------------------------------

    def _top(self) -> ScopeSchemas:
        scope = ScopeSchemas()
        for name, declared in self._unit.document.inputs.items():
            scope.own[name] = _always(declared.root)
        if self._unit.document.state:
            scope.own[STATE] = _always(state_schema(self._unit.document.state))
        return self._level(self._unit.document.nodes, ("nodes",), scope)

    def _level(
        self, nodes: Mapping[str, NodeSpec], path: KeyPath, outer: ScopeSchemas
    ) -> ScopeSchemas:
        scope = ScopeSchemas(outer)
        for name, step in nodes.items():
            where = (*path, name)
            scope.own[name] = partial(self._value, step, where, scope)
        for name in _sources_first(nodes):  # bounds the depth of recursion
            with self._log:
                scope.look(name)
        return scope

    def _inside(
        self, step: BaseNode, path: KeyPath, inside: NodeBody, outer: ScopeSchemas
    ) -> ScopeSchemas:
        """The names inside a body."""
        scope = ScopeSchemas(outer)
        for name in inside.bound:
            scope.own[name] = _always(INTEGER if name in ("index", "iteration") else None)
        if isinstance(step, MapNode):
            over = value_template(step.over)
            scope.own[step.item] = lambda: element(infer(over, outer.look))
        if isinstance(inside.body, Block):
            return self._level(inside.body.nodes, (*path, *inside.path, "nodes"), scope)
        return scope

    # -- the type of a node --------------------------------------------------------------------

    def _value(self, step: BaseNode, path: KeyPath, scope: ScopeSchemas) -> JsonSchema | None:
        """The type that dependents receive: of the node's own value, or of a replacement."""
        if path not in self._types:
            self._types[path] = None  # while it is computed
            possible = [self._own(step, path, scope)]
            possible += [scope.look(name) for name in (step.fallback, step.degrade) if name]
            possible += [infer(value_template(step.default), scope.look)] * step.has_default
            self._types[path] = _any_of(possible)
        return self._types[path]

    def _own(self, step: BaseNode, path: KeyPath, scope: ScopeSchemas) -> JsonSchema | None:
        match step:
            case ToolNode():
                return _any_of([self._choice(step, i, path).result for i in _choices(step)])
            case ModelNode():
                return _model(step)
            case MapNode():
                return self._map(step, path, scope)
            case JoinNode():
                return LIST if step.mode in ("all", "quorum", "best_effort") else None
            case BranchNode():
                return _any_of([self._body(step, path, i, scope) for i in bodies(step)])
            case LoopNode():
                return self._loop(step, path, scope)
            case WorkflowNode():
                return self._include(step).outputs()
            case AskNode():
                return step.output_schema
            case ValueNode():
                return infer(value_template(step.value), scope.look)
            case _:
                return None

    def _loop(self, step: LoopNode, path: KeyPath, scope: ScopeSchemas) -> JsonSchema | None:
        (body,) = bodies(step)
        own, breaks = self._body(step, path, body, scope), breaks_of(step)
        if not breaks:
            return own
        inner = self._inside(step, path, body, scope)
        return _any_of(
            [own, *(infer(value_template(b.value), inner.look) for b in breaks.values())]
        )

    def _map(self, step: MapNode, path: KeyPath, scope: ScopeSchemas) -> JsonSchema:
        items = [self._body(step, path, bodies(step)[0], scope)]
        if "otherwise" in step.model_fields_set:
            items.append(infer(value_template(step.otherwise), scope.look))
        return _list_of(_any_of(items))

    def _body(
        self, step: BaseNode, path: KeyPath, inside: NodeBody, outer: ScopeSchemas
    ) -> JsonSchema | None:
        scope = self._inside(step, path, inside, outer)
        if isinstance(inside.body, Block):
            return infer(value_template(inside.body.result), scope.look)
        return self._value(inside.body, (*path, *inside.path), scope)

    def _include(self, step: WorkflowNode) -> TypeChecker:
        unit = self._unit.includes[step.workflow]
        if unit not in self._others:
            self._others[unit] = TypeChecker(unit, self._tools, self._others, self._log)
        return self._others[unit]

    def _spec(self, text: str, path: KeyPath) -> ToolSpec:
        try:
            return self._tools.spec(self._unit, text)
        except (BuildError, ToolError) as error:
            if text in self._unit.document.tools:
                placed = isinstance(error, BuildError) and error.path == ("on",)
                path = ("tools", text, "on" if placed else "use")
            self._unit.fail(build_error(error), path)

    def _function(self, reference: str, path: KeyPath) -> Function:
        try:
            return self._tools.function(self._unit, reference)
        except (BuildError, ToolError) as error:
            self._unit.fail(build_error(error), path)

    # -- checks --------------------------------------------------------------------------------

    def _check_nodes(
        self, nodes: Mapping[str, NodeSpec], path: KeyPath, scope: ScopeSchemas
    ) -> None:
        for name, step in nodes.items():
            self._check_node(step, (*path, name), scope)

    def _check_node(self, step: BaseNode, path: KeyPath, scope: ScopeSchemas) -> None:
        names = self._bound(step, scope)
        for use in template_uses(step):
            with self._log:
                self._check_paths(use, path, names if use.bound else scope)
        with self._log:
            self._check_own(step, path, scope)
        if step.writes:
            own = ScopeSchemas(scope, {"value": partial(self._own, step, path, scope)})
            check_writes(self._unit, step.writes, path, own.look, self._log)
        for inside in bodies(step):
            self._check_body(
                inside.body, (*path, *inside.path), self._inside(step, path, inside, scope)
            )

    def _bound(self, step: BaseNode, scope: ScopeSchemas) -> ScopeSchemas:
        """The names of templates that have more names than the node."""
        if not isinstance(step, ModelNode):
            return scope
        inner = ScopeSchemas(scope)
        for name, value in step.arguments.items():
            inner.own[name] = partial(infer, value_template(value), scope.look)
        return inner

    def _check_body(self, body: Body, path: KeyPath, scope: ScopeSchemas) -> None:
        if not isinstance(body, Block):
            self._check_node(body, path, scope)
            return
        self._check_nodes(body.nodes, (*path, "nodes"), scope)
        for use in uses_of(body.result):
            with self._log:
                self._check_paths(use, (*path, "result"), scope)

    def _check_paths(self, use: TemplateUse, base: KeyPath, scope: ScopeSchemas) -> None:
        for reference in use.template.references:
            unknown = reference.name in use.bound and reference.name not in scope.own
            if reference.guarded or unknown:
                continue
            try:
                at(scope.look(reference.name), reference.path)
            except LookupError as error:
                word = str(reference.path[-1]) if reference.path else reference.name
                why, _, hint = str(error).partition("; ")
                schema = scope.look(reference.name)
                hint = hint or existing_part(reference.name, schema, reference.path)
                problem = TypeMismatch(f"`{reference}`: {why}", hint=hint)
                self._unit.fail(problem, (*base, *use.path), line=reference.line, word=word)

    def _check_own(self, step: BaseNode, path: KeyPath, scope: ScopeSchemas) -> None:
        match step:
            case MapNode():
                self._check_list(step.over, (*path, "map"), scope)
            case ReduceNode():
                self._check_list(step.over, (*path, "over"), scope)
                function = self._function(step.reduce, (*path, "reduce"))
                check_call(self._unit, function, step.arguments, path, first=1)
            case CallNode():
                function = self._function(step.call, (*path, "call"))
                check_call(self._unit, function, step.arguments, path)
            case BranchNode():
                check_cases(self._unit, step, path, scope.look)
            case ToolNode():
                for index in _choices(step):
                    self._check_choice(step, index, path, scope)
            case ModelNode():
                self._check_model(step, path)
            case WorkflowNode():
                unit = self._unit.includes[step.workflow]
                parameters = CalleeParameters.of_workflow(unit.document)
                check_arguments(self._unit, parameters, step.arguments, path, scope.look)
                self._include(step).check()

    def _check_model(self, step: ModelNode, path: KeyPath) -> None:
        for index, tool in enumerate(step.tools):
            if source_of(self._unit, tool) != (tool, ""):  # a server stands for all of its tools
                self._spec(tool, (*path, "tools", index))
        from weft.workflow.compile.agent import check_agent
        from weft.workflow.runtime.models.decoders import check_decode
        from weft.workflow.runtime.models.strategies import check_think

        check_think(self._unit, step, path)
        check_agent(self._unit, step, path)
        check_decode(self._unit, step, path)

    def _choice(self, step: ToolNode, index: int, path: KeyPath) -> ToolSpec:
        """The node's own tool, or for an index from 1 one of its alternatives."""
        place = ("alternatives", index - 1, "tool") if index else ("tool",)
        return self._spec(step.choices[index].tool, (*path, *place))

    def _check_choice(self, step: ToolNode, index: int, path: KeyPath, scope: ScopeSchemas) -> None:
        own, spec = self._choice(step, 0, path), self._choice(step, index, path)
        arguments = step.choices[index].arguments or {}
        place = (*path, "alternatives", index - 1) if index else path
        check_arguments(self._unit, CalleeParameters.of_tool(spec), arguments, place, scope.look)
        why = mismatch(spec.result, own.result)
        if why is not None:
            message = f"`{spec.name}` cannot stand in for `{own.name}`: its result: {why}"
            hint = "an alternative returns what the node's own tool returns"
            self._unit.fail(TypeMismatch(message, hint=hint), place)

    def _check_list(self, value: object, path: KeyPath, scope: ScopeSchemas) -> None:
        why = mismatch(infer(value_template(value), scope.look), LIST)
        if why is not None:
            error = TypeMismatch(f"`{path[-1]}` needs a list: {why}", hint="give it a list")
            self._unit.fail(error, path)


def _sources_first(nodes: Mapping[str, NodeSpec]) -> Iterable[str]:
    needs = {
        name: [n for n in (*all_names(step), step.fallback, step.degrade) if n and n in nodes]
        for name, step in nodes.items()
    }
    return TopologicalSorter(needs).static_order()


def _choices(step: ToolNode) -> range:
    return range(len(step.alternatives) + 1)


def _unknown(_: str) -> None:
    """The type of any name where none is known yet."""


def _always(schema: JsonSchema | None) -> Callable[[], JsonSchema | None]:
    return lambda: schema


def _model(step: ModelNode) -> JsonSchema:
    one: JsonSchema = step.output_schema or STRING
    if step.tools and step.agent is None:
        call = {"type": "object", "properties": {"name": STRING, "arguments": {"type": "object"}}}
        fields = {"text": STRING, "tool_calls": {"type": "array", "items": call}}
        one = {"type": "object", "properties": fields, "additionalProperties": False}
    return one if step.samples is None else _list_of(one)


def _list_of(item: JsonSchema | None) -> JsonSchema:
    return {"type": "array", "items": item} if is_part(item) else LIST


def _any_of(schemas: list[JsonSchema | None]) -> JsonSchema | None:
    if len(schemas) == 1:
        return schemas[0]
    parts = [schema for schema in schemas if is_part(schema)]
    return {"anyOf": parts} if len(parts) == len(schemas) else None
