"""That every name in a document means something, and that nobody waits for himself.

Knows no types and imports no tools. Raises the first defect through `Unit.fail`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Literal, NoReturn

from weft.agents.foreign import identifier
from weft.core.errors import (
    BuildError,
    CycleError,
    DuplicateName,
    JoinError,
    TypeMismatch,
    UnknownReference,
)
from weft.workflow.check.joins import check_join
from weft.workflow.check.needs import Need, Needs, check_order, with_stand_ins
from weft.workflow.check.scope import Scope, Symbol
from weft.workflow.document import Block, Body, NodeSpec
from weft.workflow.document.defects import closest
from weft.workflow.document.leaves import JoinNode, ModelNode, ToolNode
from weft.workflow.document.nodes import MapNode
from weft.workflow.document.step import Step
from weft.workflow.document.walk import bodies, walk
from weft.workflow.expressions import BadExpression
from weft.workflow.source import Path
from weft.workflow.sources import source_of
from weft.workflow.unit import Unit, node_name
from weft.workflow.uses import Use, uses, uses_of

_EXPRESSIONS = frozenset(("when", "until", "valid"))
_MEANT_AS_NAMES = frozenset(("map", "over", "branch", "start", "result", "outputs"))


def check_references(unit: Unit) -> None:
    """Check all names of the document. Raises: `BuildError`, a `SourceError` where it is a file."""
    _References(unit).check()


class _References:
    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._document = unit.document
        named = (path for path, _ in walk(self._document.nodes) if path[-2] == "nodes")
        self._hidden = {str(path[-1]): path for path in named}

    def check(self) -> None:
        inputs = Scope()
        for name in self._document.inputs:
            inputs.symbols[name] = Symbol("input", ("inputs", name))
        scope, _ = self._nodes(self._document.nodes, ("nodes",), inputs)
        for name, value in self._document.outputs.items():
            needs = self._value(value, ("outputs", name), scope)
            if not needs:
                hint = "refer to a node: {{ name }}"
                error = UnknownReference(f"the output `{name}` refers to nothing", hint=hint)
                self._unit.fail(error, ("outputs", name))

    # -- one scope -----------------------------------------------------------------------------

    def _nodes(
        self, nodes: Mapping[str, NodeSpec], path: Path, outer: Scope
    ) -> tuple[Scope, Needs]:
        """Check the nodes of one scope; what they need from outside of it."""
        scope = Scope(outer)
        stand_ins = {name: self._stand_ins(name, step, path, nodes) for name, step in nodes.items()}
        owners = {other: owner for owner, others in stand_ins.items() for other in others}
        for name in nodes:
            self._declare(scope, name, Symbol("node", (*path, name), owners.get(name)))
        needs = {name: self._node(step, (*path, name), scope) for name, step in nodes.items()}
        self._check_stand_ins(stand_ins, path)
        together = with_stand_ins(needs, stand_ins)
        check_order(self._unit, together)
        outside: Needs = {}
        for own in together.values():
            outside.update({name: need for name, need in own.items() if name not in nodes})
        return scope, outside

    def _declare(self, scope: Scope, name: str, symbol: Symbol) -> None:
        other = scope.find(name)
        if other is not None:
            what = f"the {other.kind} `{node_name(other.path) or other.path[-1]}`"
            error = DuplicateName(f"`{name}` is already {what}", hint="rename one of them")
            self._unit.fail(error, symbol.path, at_key=symbol.path[-1] != "as")
        scope.symbols[name] = symbol

    def _stand_ins(
        self, name: str, step: Step, path: Path, nodes: Mapping[str, NodeSpec]
    ) -> set[str]:
        found = set()
        for role, other in (("fallback", step.fallback), ("degrade", step.degrade)):
            if other is None:
                continue
            place = (*path, name, role)
            if other not in nodes:
                self._unknown("node", other, place, [n for n in nodes if n != name])
            if other == name:
                error = CycleError(f"`{name}` is its own {role}", hint="name another node")
                self._unit.fail(error, place)
            found.add(other)
        return found

    def _check_stand_ins(self, stand_ins: Mapping[str, set[str]], path: Path) -> None:
        """A node that only replaces others must not be replaced, in turn, by one of those."""
        roles = {
            owner: {other: Need(other, (*path, owner)) for other in others}
            for owner, others in stand_ins.items()
        }
        check_order(self._unit, roles)

    # -- one node ------------------------------------------------------------------------------

    def _node(self, step: Step, path: Path, scope: Scope) -> Needs:
        """Check one node and its bodies; everything that it needs."""
        try:
            own = uses(step)
        except BadExpression as error:
            self._unit.fail_in(error, path)
        needs: Needs = {}
        for use in own:
            self._use(use, path, scope, needs)
        self._names(step, path, scope, needs)
        if isinstance(step, ModelNode):
            self._prompt_names(step, own, path)
        for inside in bodies(step):
            scope_inside = Scope(scope)
            below = (*path, *inside.path)
            for name in inside.bound:
                where = (*path, "as") if name not in ("index", "iteration") else below
                self._declare_item(scope_inside, name, where)
            for name, need in self._body(inside.body, below, scope_inside).items():
                if name not in inside.bound:
                    needs.setdefault(name, need)
        return needs

    def _declare_item(self, scope: Scope, name: str, path: Path) -> None:
        if name in ("index", "iteration"):
            scope.symbols[name] = Symbol("item", path)
        else:
            self._declare(scope, name, Symbol("item", path))

    def _body(self, body: Body, path: Path, scope: Scope) -> Needs:
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

    def _value(self, value: object, path: Path, scope: Scope) -> Needs:
        needs: Needs = {}
        try:
            found = list(uses_of(value))
        except BadExpression as error:
            self._unit.fail_in(error, path)
        for use in found:
            self._use(use, path, scope, needs)
        return needs

    def _use(self, use: Use, base: Path, scope: Scope, needs: Needs) -> None:
        """Check one template that stands below `base`."""
        path = (*base, *use.path)
        self._unit.memo.templates.add(use.template)
        self._check_literal(use, path, scope)
        for reference in use.template.references:
            if reference.name in use.bound:
                continue
            need = Need(reference.name, path, reference.line)
            symbol = self._resolve(need, scope, use.bound)
            if use.early and symbol.kind != "input":
                error = TypeMismatch(
                    f"`{need.name}` is not known before the run: `{use.path[0]}` sees inputs only",
                    hint="use an input, or a `fallback` node that computes the value",
                )
                self._unit.fail(error, path, line=need.line, word=need.name)
            needs.setdefault(need.name, need)

    def _check_literal(self, use: Use, path: Path, scope: Scope) -> None:
        """A bare word where a name was surely meant."""
        text = use.template.text
        whole = "outputs" if path[:-1] == ("outputs",) else path[-1]
        meant = whole in _MEANT_AS_NAMES and scope.find(text) is not None
        if use.template.kind == "literal" and (meant or whole in _EXPRESSIONS):
            error = UnknownReference(
                f"`{text}` is only a text here", hint=f'to refer to it, write "{{{{ {text} }}}}"'
            )
            self._unit.fail(error, path)

    def _prompt_names(self, step: ModelNode, own: Iterable[Use], path: Path) -> None:
        """A name for the prompt that nothing uses: a misspelt option, or a forgotten place."""
        templates = (use.template for use in own if use.path[0] != "with")
        used = {reference.name for template in templates for reference in template.references}
        for name in step.arguments:
            if name not in used:
                fields = [field.alias or key for key, field in ModelNode.model_fields.items()]
                near = get_close_matches(name, fields, n=1)
                hint = f"did you mean `{near[0]}`?" if near else f'write "{{{{ {name} }}}}" in it'
                error = UnknownReference(f"the prompt has no `{name}`", hint=hint)
                self._unit.fail(error, (*path, "with", name), at_key=True)

    def _names(self, step: Step, path: Path, scope: Scope, needs: Needs) -> None:
        """Names that are not in templates: nodes to wait for, models, tools."""
        for index, name in enumerate(step.after):
            self._wait(Need(name, (*path, "after", index)), scope, needs)
        match step:
            case JoinNode():
                for index, name in enumerate(step.join):
                    self._wait(Need(name, (*path, "join", index)), scope, needs)
                check_join(self._unit, step, path)
            case MapNode():
                check_join(self._unit, step, path)
            case ModelNode():
                if step.model not in self._document.models:
                    models = list(self._document.models)
                    self._unknown("model", step.model, (*path, "model"), models)
                for index, tool in enumerate(step.tools):
                    self._tool(tool, (*path, "tools", index))
            case ToolNode():
                self._tool(step.tool, (*path, "tool"))
                for index, other in enumerate(step.alternatives):
                    self._tool(other.tool, (*path, "alternatives", index, "tool"))

    def _tool(self, tool: str, path: Path) -> None:
        source = source_of(self._unit, tool)
        if source is not None:
            self._tool_of_source(*source, path)
        elif ":" not in tool and tool not in self._document.tools:
            self._unknown("tool", tool, path, list(self._document.tools))

    def _tool_of_source(self, name: str, tool: str, path: Path) -> None:
        """One tool of a server; a model may also be offered all of them."""
        only = self._document.tools[name].only
        error: BuildError | None = None
        if not tool and path[-1] == "tool":
            hint = f"name one of its tools: {name}.{only[0] if only else 'some_tool'}"
            error = UnknownReference(f"`{name}` is a server, not a tool", hint=hint)
        elif tool and only and identifier(tool) not in map(identifier, only):
            hint = closest(tool, only) or "add it to `only`"
            error = UnknownReference(f"`{tool}` is not among the tools of `{name}`", hint=hint)
        if error is not None:
            self._unit.fail(error, path)

    def _wait(self, need: Need, scope: Scope, needs: Needs) -> None:
        symbol = self._resolve(need, scope, frozenset())
        if symbol.kind != "node":
            message = f"`{need.name}` is the {symbol.kind} of that name, not a node"
            error = UnknownReference(message, hint="name a node to wait for")
            self._unit.fail(error, need.path)
        needs.setdefault(need.name, need)

    # -- names that mean nothing ---------------------------------------------------------------

    def _resolve(self, need: Need, scope: Scope, bound: frozenset[str]) -> Symbol:
        symbol = scope.find(need.name)
        if symbol is None:
            self._refuse_name(need, [*bound, *scope.visible()])
        if symbol.stands_in_for is not None:
            owner = symbol.stands_in_for
            error: BuildError = JoinError(
                f"`{need.name}` runs only in the place of `{owner}` and has no value of its own",
                hint=f"use `{owner}`, or make another node for it",
            )
            self._unit.fail(error, need.path, line=need.line, word=need.name)
        return symbol

    def _refuse_name(self, need: Need, visible: list[str]) -> NoReturn:
        hidden = self._hidden.get(need.name)
        error: BuildError
        if hidden is not None:
            owner = node_name(hidden[: _last(hidden, "nodes")]) or str(hidden[1])
            error = JoinError(
                f"`{need.name}` lives inside `{owner}` and cannot be seen from here",
                hint=f"use `{owner}`, which carries its result",
            )
        else:
            hint = closest(need.name, visible) or "declare it under `inputs` or `nodes`"
            error = UnknownReference(f"nothing here is called `{need.name}`", hint=hint)
        self._unit.fail(error, need.path, line=need.line, word=need.name)

    def _unknown(
        self,
        what: Literal["model", "tool", "node"],
        name: str,
        path: Path,
        choices: list[str],
    ) -> NoReturn:
        hint = closest(name, choices) or f"declare it under `{what}s`"
        beside = " beside it" if what == "node" else ""
        error = UnknownReference(f"there is no {what} called `{name}`{beside}", hint=hint)
        self._unit.fail(error, path)


def _last(path: Path, part: str) -> int:
    return max(index for index, step in enumerate(path) if step == part)
