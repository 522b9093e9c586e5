"""What a parsed template refers to, and whether it stays within what templates have.

Reads Jinja's syntax tree; evaluates nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from jinja2 import nodes
from jinja2.tests import TESTS

from weft.workflow.expressions.errors import BadExpression
from weft.workflow.expressions.filters import COUNTED, FILTERS

_ALLOWED: tuple[type[nodes.Node], ...] = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.If,
    nodes.For,
    nodes.Name,
    nodes.Const,
    nodes.List,
    nodes.Tuple,
    nodes.Dict,
    nodes.Pair,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.Filter,
    nodes.Test,
    nodes.Call,
    nodes.Keyword,
    nodes.CondExpr,
    nodes.Compare,
    nodes.Operand,
    nodes.Concat,
    nodes.BinExpr,
    nodes.UnaryExpr,
)
_WORDS: Mapping[type[nodes.Node], str] = {
    nodes.Assign: "set",
    nodes.AssignBlock: "set",
    nodes.CallBlock: "call",
    nodes.FilterBlock: "filter",
    nodes.FromImport: "from",
}
_MAX_DEPTH = 60
_GUARDS = frozenset(("default", "d"))
_GLOBALS = frozenset(("range",))


@dataclass(frozen=True, slots=True)
class Reference:
    """A name that a template uses, and the keys and indices that follow it.

    `guarded`: the template says what to do when the path does not exist. `line` counts from 1.
    """

    name: str
    path: tuple[str | int, ...] = ()
    line: int = 1
    guarded: bool = False

    def __str__(self) -> str:
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return self.name + "".join(steps)


def references(tree: nodes.Template) -> tuple[Reference, ...]:
    """All free references, in order. Bounds every loop in `tree` on the way.

    Raises: `BadExpression` for what templates do not have.
    """
    walker = _Walker()
    walker.visit(tree, frozenset(), 0, guarded=False)
    return tuple(walker.found)


class _Walker:
    def __init__(self) -> None:
        self.found: list[Reference] = []

    def visit(self, node: nodes.Node, bound: frozenset[str], depth: int, *, guarded: bool) -> None:
        _check(node, depth)
        reference = _reference(node, guarded)
        if reference is not None:
            if reference.name not in bound | _GLOBALS:
                self.found.append(reference)
            return
        if isinstance(node, nodes.For):
            self._loop(node, bound, depth)
            return
        inner = guarded or _is_guard(node)
        for child in _children(node):
            self.visit(child, bound, depth + 1, guarded=inner)

    def _loop(self, node: nodes.For, bound: frozenset[str], depth: int) -> None:
        if node.recursive:
            raise BadExpression("loops do not recurse in templates", line=node.lineno, word="for")
        self.visit(node.iter, bound, depth + 1, guarded=False)
        targets = {name.name for name in _names(node.target)}
        inside = bound | targets | {"loop"}
        rest: Iterable[nodes.Node] = node.body if node.test is None else [node.test, *node.body]
        for child in rest:
            self.visit(child, inside, depth + 1, guarded=False)
        for child in node.else_:
            self.visit(child, bound, depth + 1, guarded=False)
        node.iter = nodes.Filter(node.iter, COUNTED, [], [], None, None, lineno=node.lineno)


def _children(node: nodes.Node) -> Iterable[nodes.Node]:
    """The parts of `node`; a method that is called is not a field of its owner."""
    if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr):
        return [node.node.node, *node.args, *node.kwargs]
    return node.iter_child_nodes()


def _check(node: nodes.Node, depth: int) -> None:
    line = node.lineno or 1
    if depth > _MAX_DEPTH:
        raise BadExpression("the expression is nested too deeply", line=line)
    if not isinstance(node, _ALLOWED):
        what = _WORDS.get(type(node), type(node).__name__.lower())
        raise BadExpression(
            f"templates have no {{% {what} %}}",
            line=line,
            word=what,
            hint="they have {{ values }}, {% if %} and {% for %}; compute the rest in a node",
        )
    if isinstance(node, nodes.Filter):
        _check_known("filter", node.name, FILTERS, line)
    elif isinstance(node, nodes.Test):
        _check_known("test", node.name, TESTS, line)


def _check_known(what: str, name: str, known: Iterable[str], line: int) -> None:
    choices = [choice for choice in known if choice.isidentifier() and choice != COUNTED]
    if name not in choices:
        near = get_close_matches(name, choices, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(sorted(choices))}"
        raise BadExpression(f"there is no {what} `{name}`", line=line, word=name, hint=hint)


def _reference(node: nodes.Node, guarded: bool) -> Reference | None:
    """The name and the path, when `node` is nothing else."""
    steps: list[str | int] = []
    while len(steps) <= _MAX_DEPTH:
        match node:
            case nodes.Name():
                return Reference(node.name, tuple(reversed(steps)), node.lineno or 1, guarded)
            case nodes.Getattr(node=inner, attr=attribute):
                steps.append(attribute)
            case nodes.Getitem(node=inner, arg=nodes.Const(value=str() | int() as key)):
                steps.append(key)
            case _:
                return None
        node = inner
    return None


def _is_guard(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Filter):
        return node.name in _GUARDS
    return isinstance(node, nodes.Test) and node.name in ("defined", "undefined")


def _names(target: nodes.Node) -> list[nodes.Name]:
    return [target] if isinstance(target, nodes.Name) else list(target.find_all(nodes.Name))
