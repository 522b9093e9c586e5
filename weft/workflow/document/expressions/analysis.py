"""Static analysis of templates on Jinja's syntax tree: references, and certain failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jinja2 import nodes
from jinja2.tests import TESTS

from weft.core.errors import BuildError
from weft.core.suggestion import closest
from weft.workflow.document.expressions.sandbox import (
    COUNTED,
    FILTERS,
    MAX_STEPS,
    METHODS,
    OutOfBounds,
    multiply,
    power,
    remainder,
    whole_range,
)


class BadExpression(BuildError):
    """A template does not parse, or uses unsupported syntax.

    `line` counts from 1 inside the text; `word` is the faulty word, if known; `path` is that of the
    text inside a nested value. `in_text`: its braces may be meant as text.
    """

    def __init__(
        self,
        message: str,
        *,
        line: int = 1,
        word: str | None = None,
        hint: str | None = None,
        in_text: bool = False,
    ) -> None:
        super().__init__(message, hint=hint)
        self.line = line
        self.word = word
        self.in_text = in_text
        self.path: tuple[str | int, ...] = ()


_ALLOWED_NAMES = (
    *("Template", "Output", "TemplateData", "If", "For", "Name", "Const", "List"),
    *("Tuple", "Dict", "Pair", "Getattr", "Getitem", "Slice", "Filter", "Test"),
    *("Call", "Keyword", "CondExpr", "Compare", "Operand", "Concat", "BinExpr"),
    *("UnaryExpr",),
)
_ALLOWED: tuple[type[nodes.Node], ...] = tuple(getattr(nodes, name) for name in _ALLOWED_NAMES)
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

    `guarded`: the template handles a missing path. `line` counts from 1.
    """

    name: str
    path: tuple[str | int, ...] = ()
    line: int = 1
    guarded: bool = False

    def __str__(self) -> str:
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return self.name + "".join(steps)


def references(tree: nodes.Template) -> tuple[Reference, ...]:
    """All free references, in order. Also puts the step counter around every loop of `tree`.

    Raises: `BadExpression` for unsupported syntax.
    """
    walker = _ReferenceWalker()
    walker.visit(tree, frozenset(), 0, guarded=False)
    return tuple(walker.found)


class _ReferenceWalker:
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
    """The parts of `node`, except the names of methods that it calls."""
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


def _check_known(what: str, name: str, names: Iterable[str], line: int) -> None:
    choices = [choice for choice in names if choice.isidentifier() and choice != COUNTED]
    if name not in choices:
        near = closest(name, choices)
        hint = f"did you mean `{near}`?" if near else f"there are: {', '.join(sorted(choices))}"
        raise BadExpression(f"there is no {what} `{name}`", line=line, word=name, hint=hint)


def _reference(node: nodes.Node, guarded: bool) -> Reference | None:
    """The reference, if `node` is a name with a path and nothing else."""
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


_OPERATORS: Final[Mapping[type[nodes.BinExpr], Any]] = {
    nodes.Add: lambda left, right: left + right,
    nodes.Sub: lambda left, right: left - right,
    nodes.Mul: multiply,
    nodes.Div: lambda left, right: left / right,
    nodes.FloorDiv: lambda left, right: left // right,
    nodes.Mod: remainder,
    nodes.Pow: power,
}
_SIGNS: Final[Mapping[type[nodes.UnaryExpr], Any]] = {
    nodes.Neg: lambda value: -value,
    nodes.Pos: lambda value: +value,
}
_LOOP_METHODS: Final = frozenset(("cycle", "changed"))
_WRONG: Final = (OutOfBounds, ArithmeticError, TypeError, ValueError)


class _NotConstant(Exception):
    """The value depends on data."""


def check_constants(tree: nodes.Template) -> None:
    """Raises: `BadExpression` for expressions that always fail."""
    for node in tree.find_all(nodes.Node):
        _check_names(node)
        if isinstance(node, (nodes.BinExpr, nodes.UnaryExpr, nodes.Call)):
            _check_value(node)
    if _least_steps(tree.body) > MAX_STEPS:
        line = next(iter(tree.find_all(nodes.For))).lineno or 1
        raise BadExpression(
            f"the loops make more than {MAX_STEPS:,} steps", line=line, word="for", hint=_HINT
        )


_HINT: Final = "compute it in a node"


def _check_names(node: nodes.Node) -> None:
    for name in _names_read(node):
        if any(step.startswith("__") for step in name.split(".")):
            raise BadExpression(
                f"templates cannot use `{name}`", line=node.lineno or 1, word=name, hint=_HINT
            )
    if isinstance(node, nodes.Call):
        _check_callable(node)


def _names_read(node: nodes.Node) -> Iterator[str]:
    """The names that `node` reads: a variable, a field, or a filter's `attribute`."""
    match node:
        case nodes.Name(name=name) | nodes.Getattr(attr=name):
            yield name
        case nodes.Getitem(arg=nodes.Const(value=str() as key)):
            yield key
        case nodes.Filter(kwargs=keywords):
            yield from (
                keyword.value.value
                for keyword in keywords
                if keyword.key == "attribute"
                and isinstance(keyword.value, nodes.Const)
                and isinstance(keyword.value.value, str)
            )


def _check_callable(node: nodes.Call) -> None:
    match node.node:
        case nodes.Getattr(node=owner, attr=method):
            callables = METHODS | _LOOP_METHODS if isinstance(owner, nodes.Name) else METHODS
        case nodes.Name(name=method):
            callables = frozenset(("range",))
        case _:
            method, callables = "this", frozenset()
    if method not in callables:
        raise BadExpression(
            f"`{method}` cannot be called in a template",
            line=node.lineno or 1,
            word=method,
            hint=f"there are: {', '.join(sorted(METHODS))}; and range(...)",
        )


def _check_value(node: nodes.Expr) -> None:
    try:
        _value(node)
    except _NotConstant:
        return
    except _WRONG as error:
        raise BadExpression(
            f"this cannot be computed: {error}", line=node.lineno or 1, hint=_HINT
        ) from error


def _value(node: nodes.Node) -> Any:
    match node:
        case nodes.Const(value=value):
            return value
        case nodes.TemplateData(data=text):
            return text
        case nodes.List(items=items) | nodes.Tuple(items=items):
            return [_value(item) for item in items]
        case nodes.BinExpr(left=left, right=right) if type(node) in _OPERATORS:
            return _OPERATORS[type(node)](_value(left), _value(right))
        case nodes.UnaryExpr(node=inner) if type(node) in _SIGNS:
            return _SIGNS[type(node)](_value(inner))
        case nodes.Call(node=nodes.Name(name="range"), args=args, kwargs=[]):
            return whole_range(*map(_value, args))
        case nodes.Filter(node=nodes.Node() as inner, name=name) if name == COUNTED:
            return _value(inner)
        case _:
            raise _NotConstant


def _least_steps(body: list[nodes.Node]) -> int:
    """The fewest steps that the loops in `body` make: those of constant length."""
    return sum(_loop_steps(node) for node in body if isinstance(node, nodes.For))


def _loop_steps(loop: nodes.For) -> int:
    try:
        length = len(_value(loop.iter))
    except (_NotConstant, TypeError):
        return 0
    inner = 0 if loop.test is not None else _least_steps(loop.body)
    return length * (1 + inner)
