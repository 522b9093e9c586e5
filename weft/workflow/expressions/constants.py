"""What a template is certain to do wrong, found before it runs: constants, loops, names.

Reads Jinja's syntax tree. Only operators on constants are computed, within the bounds of templates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from jinja2 import nodes

from weft.workflow.expressions.bounds import (
    MAX_STEPS,
    OutOfBounds,
    multiply,
    power,
    remainder,
    whole_range,
)
from weft.workflow.expressions.errors import BadExpression
from weft.workflow.expressions.filters import COUNTED
from weft.workflow.expressions.sandbox import METHODS

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


class _Open(Exception):
    """The value depends on data."""


def check_constants(tree: nodes.Template) -> None:
    """Raises: `BadExpression` for what fails in every run that gets there."""
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
    for name in _names(node):
        if any(step.startswith("__") for step in name.split(".")):
            raise BadExpression(
                f"templates cannot use `{name}`", line=node.lineno or 1, word=name, hint=_HINT
            )
    if isinstance(node, nodes.Call):
        _check_callable(node)


def _names(node: nodes.Node) -> Iterator[str]:
    """What `node` reads by name: a variable, a field, or the fields that a filter is told."""
    match node:
        case nodes.Name(name=name) | nodes.Getattr(attr=name):
            yield name
        case nodes.Getitem(arg=nodes.Const(value=str() as key)):
            yield key
        case nodes.Filter(kwargs=given):
            yield from (
                keyword.value.value
                for keyword in given
                if keyword.key == "attribute"
                and isinstance(keyword.value, nodes.Const)
                and isinstance(keyword.value.value, str)
            )


def _check_callable(node: nodes.Call) -> None:
    match node.node:
        case nodes.Getattr(node=owner, attr=method):
            known = METHODS | _LOOP_METHODS if isinstance(owner, nodes.Name) else METHODS
        case nodes.Name(name=method):
            known = frozenset(("range",))
        case _:
            method, known = "this", frozenset()
    if method not in known:
        raise BadExpression(
            f"`{method}` cannot be called in a template",
            line=node.lineno or 1,
            word=method,
            hint=f"there are: {', '.join(sorted(METHODS))}; and range(...)",
        )


def _check_value(node: nodes.Expr) -> None:
    try:
        _value(node)
    except _Open:
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
            raise _Open


def _least_steps(body: list[nodes.Node]) -> int:
    """How many steps the loops in `body` make at least: those whose lengths are known."""
    return sum(_loop_steps(node) for node in body if isinstance(node, nodes.For))


def _loop_steps(loop: nodes.For) -> int:
    try:
        length = len(_value(loop.iter))
    except (_Open, TypeError):
        return 0
    inner = 0 if loop.test is not None else _least_steps(loop.body)
    return length * (1 + inner)
