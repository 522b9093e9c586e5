"""Checks that every name in a document is defined, and that no node waits for itself.

Imports no tools. Raises the first defect through `Unit.fail`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError as Cycle
from graphlib import TopologicalSorter
from typing import Literal, NoReturn

from weft.agents.untrusted import identifier
from weft.core.errors import (
    BuildError,
    CycleError,
    DuplicateName,
    JoinError,
    TypeMismatch,
    UnknownReference,
)
from weft.core.suggestion import closest
from weft.workflow.document import Block, Body, NodeSpec
from weft.workflow.document.breaks import breaks_before, check_breaks
from weft.workflow.document.check.evaluation import check_evaluation
from weft.workflow.document.check.state import check_state
from weft.workflow.document.defect_log import DefectLog
from weft.workflow.document.expressions import BadExpression
from weft.workflow.document.joins import check_join
from weft.workflow.document.remedies import undeclared, unknown_name
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.spec.document import bodies, node_address, walk
from weft.workflow.document.spec.nodes import (
    BaseNode,
    BreakNode,
    JoinNode,
    MapNode,
    ModelNode,
    ToolNode,
)
from weft.workflow.document.state_order import STATE, state_waits
from weft.workflow.document.symbols import DocumentSymbol, SymbolTable
from weft.workflow.document.templates import TemplateUse, template_uses, uses_of
from weft.workflow.document.tool_servers import source_of
from weft.workflow.document.unit import Unit, node_name


@dataclass(frozen=True, slots=True)
class Dependency:
    """A use of `name`: its path, and the line inside the text there."""

    name: str
    path: KeyPath
    line: int = 1


Dependencies = dict[str, Dependency]
"""The names that a node and its bodies use, each with its first use."""


def check_order(unit: Unit, needs: Mapping[str, Dependencies]) -> None:
    """Check that the nodes of one level can run in some order.

    Raises: `CycleError`, at the place where a node of the cycle refers to the next.
    """
    graph = {name: [other for other in own if other in needs] for name, own in needs.items()}
    for name, others in graph.items():
        if name in others:
            need = needs[name][name]
            user = (node_name(need.path) or name).partition("/")[0]
            through = "" if user == name else f" through `{user}`, which stands in for it"
            _refuse(unit, need, f"`{name}` needs itself{through}")
    try:
        TopologicalSorter(graph).prepare()
    except Cycle as cycle:
        ring = list(reversed(cycle.args[1][1:]))  # each needs the next one
        start = min(range(len(ring)), key=lambda i: list(needs).index(ring[i]))
        ring = ring[start:] + ring[:start]
        chain = ", which needs ".join(f"`{name}`" for name in [*ring[1:], ring[0]])
        _refuse(unit, needs[ring[0]][ring[1]], f"`{ring[0]}` needs {chain}")


def with_replacements(
    needs: Mapping[str, Dependencies], replacements: Mapping[str, set[str]]
) -> dict[str, Dependencies]:
    """`needs`, where a node also needs what its fallback and degrade nodes need."""
    return {name: _all(name, needs, replacements) for name in needs}


def _all(
    name: str, needs: Mapping[str, Dependencies], replacements: Mapping[str, set[str]]
) -> Dependencies:
    merged: Dependencies = {}
    for member in _chain(name, replacements):
        for other, need in needs[member].items():
            merged.setdefault(other, need)
    return merged


def _chain(name: str, replacements: Mapping[str, set[str]]) -> Iterator[str]:
    visited, todo = set(), [name]
    while todo:
        member = todo.pop()
        if member not in visited:
            visited.add(member)
            yield member
            todo.extend(sorted(replacements.get(member, ())))


def _refuse(unit: Unit, need: Dependency, message: str) -> NoReturn:
    error = CycleError(message, hint="break the circle, or use a `loop` node to repeat")
    unit.fail(error, need.path, line=need.line, word=need.name)


_EXPRESSIONS = frozenset(("when", "until", "valid", "break", "expect", "accept"))
_MEANT_AS_NAMES = frozenset(("map", "over", "branch", "start", "result", "outputs"))


def check_references(unit: Unit, log: DefectLog | None = None) -> None:
    """Check all names of the document.

    Raises: `BuildError`, for a file a `SourceError`, with all defects; with a `log` nothing.
    """
    own = DefectLog() if log is None else log
    _ReferenceChecker(unit, own).check()
    if log is None:
        own.finish()


class _ReferenceChecker:
    def __init__(self, unit: Unit, log: DefectLog) -> None:
        self._unit = unit
        self._log = log
        self._document = unit.document
        named = (path for path, _ in walk(self._document.nodes) if path[-2] == "nodes")
        self._hidden = {str(path[-1]): path for path in named}

    def check(self) -> None:
        check_breaks(self._unit, self._log)
        inputs = SymbolTable()
        for name in self._document.inputs:
            inputs.symbols[name] = DocumentSymbol("input", ("inputs", name))
        if self._document.state:
            with self._log:
                self._declare(inputs, STATE, DocumentSymbol("state", ("state",)))
        scope, _ = self._nodes(self._document.nodes, ("nodes",), inputs)
        check_state(self._unit, self._log)
        self._knobs()
        for name, value in self._document.outputs.items():
            with self._log:
                self._output(name, value, scope)
        check_evaluation(self._unit, self._log)

    def _knobs(self) -> None:
        """Check the names in `optimise`."""
        declared = None if self._document.optimise is None else self._document.optimise.knobs
        nodes = [node_address(path) for path, _ in walk(self._document.nodes)] if declared else []
        models = list(self._document.models)
        for address, knobs in (declared or {}).items():
            place = ("optimise", "knobs", address)
            with self._log:
                if address not in nodes:
                    hint = choice_hint(address, nodes) or "name a node by its address"
                    error = UnknownReference(f"there is no node `{address}`", hint=hint)
                    self._unit.fail(error, place, at_key=True)
                for index, model in enumerate(knobs.model or ()):
                    if model not in models:
                        self._unknown("model", model, (*place, "model", index), models)

    def _output(self, name: str, value: object, scope: SymbolTable) -> None:
        before = len(self._log.found)
        needs = self._value(value, ("outputs", name), scope)
        if not needs and len(self._log.found) == before and (value is not None or not before):
            hint = "refer to a node: {{ name }}"
            error = UnknownReference(f"the output `{name}` refers to nothing", hint=hint)
            self._unit.fail(error, ("outputs", name))

    # -- one scope -----------------------------------------------------------------------------

    def _nodes(
        self, nodes: Mapping[str, NodeSpec], path: KeyPath, outer: SymbolTable
    ) -> tuple[SymbolTable, Dependencies]:
        """Check the nodes of one level, and return what they need from outer levels."""
        scope = SymbolTable(outer)
        replacements: dict[str, set[str]] = {name: set() for name in nodes}
        for name, step in nodes.items():
            with self._log:
                replacements[name] = self._replacements(name, step, path, nodes)
        owners = {other: owner for owner, others in replacements.items() for other in others}
        for name, step in nodes.items():
            kind: Literal["node", "break"] = "break" if isinstance(step, BreakNode) else "node"
            with self._log:
                self._declare(scope, name, DocumentSymbol(kind, (*path, name), owners.get(name)))
        needs: dict[str, Dependencies] = {name: {} for name in nodes}
        for name, step in nodes.items():
            with self._log:
                needs[name] = self._node(step, (*path, name), scope)
        for name, last in breaks_before(nodes).items():
            if name in nodes:
                needs[name].setdefault(last, Dependency(last, (*path, name)))
        for name, writer in state_waits(nodes, self._document.state):
            needs[name].setdefault(writer, Dependency(writer, (*path, name)))
        together = with_replacements(needs, replacements)
        with self._log:
            self._check_replacements(replacements, path)
            check_order(self._unit, together)
        outside: Dependencies = {}
        for own in together.values():
            outside.update({name: need for name, need in own.items() if name not in nodes})
        return scope, outside

    def _declare(self, scope: SymbolTable, name: str, symbol: DocumentSymbol) -> None:
        other = scope.find(name)
        if other is not None:
            what = f"the {other.kind} `{node_name(other.path) or other.path[-1]}`"
            error = DuplicateName(f"`{name}` is already {what}", hint="rename one of them")
            self._unit.fail(error, symbol.path, at_key=symbol.path[-1] != "as")
        scope.symbols[name] = symbol

    def _replacements(
        self, name: str, step: BaseNode, path: KeyPath, nodes: Mapping[str, NodeSpec]
    ) -> set[str]:
        replacements = set()
        for role, other in (("fallback", step.fallback), ("degrade", step.degrade)):
            if other is None:
                continue
            place = (*path, name, role)
            if other not in nodes:
                self._unknown("node", other, place, [n for n in nodes if n != name])
            if isinstance(nodes[other], BreakNode):
                wrong = UnknownReference(f"`{other}` is a break", hint="name another node")
                self._unit.fail(wrong, place)
            if other == name:
                error = CycleError(f"`{name}` is its own {role}", hint="name another node")
                self._unit.fail(error, place)
            replacements.add(other)
        return replacements

    def _check_replacements(self, replacements: Mapping[str, set[str]], path: KeyPath) -> None:
        """Check that no node is, through others, its own replacement."""
        roles = {
            owner: {other: Dependency(other, (*path, owner)) for other in others}
            for owner, others in replacements.items()
        }
        check_order(self._unit, roles)

    # -- one node ------------------------------------------------------------------------------

    def _node(self, step: BaseNode, path: KeyPath, scope: SymbolTable) -> Dependencies:
        """Check one node and its bodies, and return what they need."""
        try:
            own = template_uses(step)
        except BadExpression as error:
            self._unit.fail_in(error, path)
        needs: Dependencies = {}
        for use in own:
            with self._log:
                self._use(use, path, scope, needs)
        with self._log:
            self._names(step, path, scope, needs)
            if isinstance(step, ModelNode):
                self._prompt_names(step, own, path)
        for inside in bodies(step):
            scope_inside = SymbolTable(scope)
            below = (*path, *inside.path)
            for name in inside.bound:
                where = (*path, "as") if name not in ("index", "iteration") else below
                with self._log:
                    self._declare_item(scope_inside, name, where)
            for name, need in self._body(inside.body, below, scope_inside).items():
                if name not in inside.bound:
                    needs.setdefault(name, need)
        return needs

    def _declare_item(self, scope: SymbolTable, name: str, path: KeyPath) -> None:
        if name in ("index", "iteration"):
            scope.symbols[name] = DocumentSymbol("item", path)
        else:
            self._declare(scope, name, DocumentSymbol("item", path))

    def _body(self, body: Body, path: KeyPath, scope: SymbolTable) -> Dependencies:
        if not isinstance(body, Block):
            for role in ("fallback", "degrade"):
                other = getattr(body, role)
                if other is not None:
                    hint = "write `nodes:` with both nodes, and a `result:`"
                    error = UnknownReference(f"there is no node `{other}` beside it", hint=hint)
                    self._unit.fail(error, (*path, role))
            return self._node(body, path, scope)
        inner, needs = self._nodes(body.nodes, (*path, "nodes"), scope)
        result = self._value(body.result, (*path, "result"), inner)
        needs.update({name: need for name, need in result.items() if name not in body.nodes})
        return needs

    def _value(self, value: object, path: KeyPath, scope: SymbolTable) -> Dependencies:
        needs: Dependencies = {}
        try:
            uses = list(uses_of(value))
        except BadExpression as error:
            self._unit.fail_in(error, path)
        for use in uses:
            with self._log:
                self._use(use, path, scope, needs)
        return needs

    def _use(
        self, use: TemplateUse, base: KeyPath, scope: SymbolTable, needs: Dependencies
    ) -> None:
        """Check one template below `base`."""
        path = (*base, *use.path)
        self._unit.memo.templates.add(use.template)
        self._check_literal(use, path, scope)
        for reference in use.template.references:
            if reference.name in use.bound:
                continue
            need = Dependency(reference.name, path, reference.line)
            in_text = use.template.kind == "text"
            symbol = self._resolve(need, scope, use.bound, in_text=in_text)
            if use.early and symbol.kind != "input":
                error = TypeMismatch(
                    f"`{need.name}` is not known before the run: `{use.path[0]}` sees inputs only",
                    hint="use an input, or a `fallback` node that computes the value",
                )
                self._unit.fail(error, path, line=need.line, word=need.name)
            needs.setdefault(need.name, need)

    def _check_literal(self, use: TemplateUse, path: KeyPath, scope: SymbolTable) -> None:
        """Refuse a bare word where a reference was surely meant."""
        text = use.template.text
        within = "outputs" if path[:-1] == ("outputs",) else path[-2]
        whole = within if within in ("outputs", "expect") else path[-1]
        meant = whole in _MEANT_AS_NAMES and scope.find(text) is not None
        if use.template.kind == "literal" and (meant or whole in _EXPRESSIONS):
            error = UnknownReference(
                f"`{text}` is only a text here", hint=f'to refer to it, write "{{{{ {text} }}}}"'
            )
            self._unit.fail(error, path)

    def _prompt_names(self, step: ModelNode, own: Iterable[TemplateUse], path: KeyPath) -> None:
        """Refuse an unused name for the prompt: a misspelt option, or a forgotten use."""
        templates = (use.template for use in own if use.path[0] != "with")
        used = {reference.name for template in templates for reference in template.references}
        for name in step.arguments:
            if name not in used:
                fields = [field.alias or key for key, field in ModelNode.model_fields.items()]
                near = closest(name, fields)
                hint = f"did you mean `{near}`?" if near else f'write "{{{{ {name} }}}}" in it'
                error = UnknownReference(f"the prompt has no `{name}`", hint=hint)
                self._unit.fail(error, (*path, "with", name), at_key=True)

    def _names(
        self, step: BaseNode, path: KeyPath, scope: SymbolTable, needs: Dependencies
    ) -> None:
        """Check names outside of templates: nodes to wait for, models, tools."""
        for index, name in enumerate(step.after):
            self._wait(Dependency(name, (*path, "after", index)), scope, needs)
        match step:
            case JoinNode():
                for index, name in enumerate(step.join):
                    self._wait(Dependency(name, (*path, "join", index)), scope, needs)
                check_join(self._unit, step, path)
            case MapNode():
                check_join(self._unit, step, path)
            case ModelNode():
                self._models(step, path)
                for index, tool in enumerate(step.tools):
                    self._tool(tool, (*path, "tools", index))
            case ToolNode():
                self._tool(step.tool, (*path, "tool"))
                for index, other in enumerate(step.alternatives):
                    self._tool(other.tool, (*path, "alternatives", index, "tool"))

    def _models(self, step: ModelNode, path: KeyPath) -> None:
        models = list(self._document.models)
        if step.model not in models:
            self._unknown("model", step.model, (*path, "model"), models)
        summarizer = step.conversation and step.conversation.summarize
        if isinstance(summarizer, str) and summarizer not in models:
            self._unknown("model", summarizer, (*path, "conversation", "summarize"), models)

    def _tool(self, tool: str, path: KeyPath) -> None:
        source = source_of(self._unit, tool)
        if source is not None:
            self._tool_of_source(*source, path)
        elif ":" not in tool and tool not in self._document.tools:
            self._unknown("tool", tool, path, list(self._document.tools))

    def _tool_of_source(self, name: str, tool: str, path: KeyPath) -> None:
        """Check one tool of a server; a model may also be offered all of them."""
        only = self._document.tools[name].only
        error: BuildError | None = None
        if not tool and path[-1] == "tool":
            hint = f"name one of its tools: {name}.{only[0] if only else 'some_tool'}"
            error = UnknownReference(f"`{name}` is a server, not a tool", hint=hint)
        elif tool and only and identifier(tool) not in map(identifier, only):
            hint = choice_hint(tool, only) or "add it to `only`"
            error = UnknownReference(f"`{tool}` is not among the tools of `{name}`", hint=hint)
        if error is not None:
            self._unit.fail(error, path)

    def _wait(self, need: Dependency, scope: SymbolTable, needs: Dependencies) -> None:
        symbol = self._resolve(need, scope, frozenset())
        if symbol.kind != "node":
            message = f"`{need.name}` is the {symbol.kind} of that name, not a node"
            error = UnknownReference(message, hint="name a node to wait for")
            self._unit.fail(error, need.path)
        needs.setdefault(need.name, need)

    # -- undefined names -----------------------------------------------------------------------

    def _resolve(
        self, need: Dependency, scope: SymbolTable, bound: frozenset[str], *, in_text: bool = False
    ) -> DocumentSymbol:
        symbol = scope.find(need.name)
        if symbol is None:
            self._refuse_name(need, [*bound, *scope.visible()], in_text=in_text)
        if symbol.kind == "break":
            text = f"`{need.name}` ends a loop and has no value for other nodes"
            refusal = UnknownReference(text, hint="use what its condition uses")
            self._unit.fail(refusal, need.path, line=need.line, word=need.name)
        if symbol.replaces is not None:
            owner = symbol.replaces
            error: BuildError = JoinError(
                f"`{need.name}` runs only in the place of `{owner}` and has no value of its own",
                hint=f"use `{owner}`, or make another node for it",
            )
            self._unit.fail(error, need.path, line=need.line, word=need.name)
        return symbol

    def _refuse_name(self, need: Dependency, visible: list[str], *, in_text: bool) -> NoReturn:
        hidden = self._hidden.get(need.name)
        error: BuildError
        if hidden is not None:
            last = max(index for index, part in enumerate(hidden) if part == "nodes")
            owner = node_name(hidden[:last]) or str(hidden[1])
            error = JoinError(
                f"`{need.name}` lives inside `{owner}` and cannot be seen from here",
                hint=f"use `{owner}`, which carries its result",
            )
        else:
            around = (node_name(need.path) or "").split("/")
            others = [name for name in visible if name not in around]
            own = self._unit.in_python
            hint = unknown_name(need.name, others, in_python=own, in_text=in_text)
            error = UnknownReference(f"nothing here is called `{need.name}`", hint=hint)
        self._unit.fail(error, need.path, line=need.line, word=need.name)

    def _unknown(
        self, what: Literal["model", "tool", "node"], name: str, path: KeyPath, choices: list[str]
    ) -> NoReturn:
        own = self._unit.in_python
        hint = choice_hint(name, choices) or undeclared(what, in_python=own)
        beside = " beside it" if what == "node" else ""
        error = UnknownReference(f"there is no {what} called `{name}`{beside}", hint=hint)
        self._unit.fail(error, path)
