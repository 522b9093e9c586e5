"""What a plan can say too: a path into a value, a condition on one. Read from Jinja's syntax tree.

Evaluates nothing but literals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jinja2 import nodes

from weft.planner.plan.plan import Operator
from weft.workflow.expressions import Template

_OPERATORS: Final[Mapping[str, Operator]] = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "lteq": "<=",
    "gt": ">",
    "gteq": ">=",
}


@dataclass(frozen=True, slots=True)
class Path:
    """A name and the keys and indexes that follow it."""

    name: str
    steps: tuple[str | int, ...] = ()


def path(text: Template) -> Path | None:
    """The path that `text` is, and nothing else."""
    expression = _expression(text)
    return None if expression is None else _path(expression)


def paths(text: Template) -> Iterator[Path]:
    """The paths whose values stand in `text`, in order."""
    outputs = [] if text.tree is None else text.tree.find_all(nodes.Output)
    found = (_path(part) for output in outputs for part in output.nodes)
    return (one for one in found if one is not None)


def comparison(text: Template) -> tuple[Path, Operator, Any] | None:
    """The path, the operator and the literal of a condition that a plan can have."""
    match _expression(text):
        case nodes.Not(node=inner):
            operator: Operator = "not"
            literal = None
        case nodes.Compare(expr=inner, ops=[nodes.Operand(op=op, expr=right)]) if op in _OPERATORS:
            operator = _OPERATORS[op]
            try:
                literal = plain(right.as_const())
            except nodes.Impossible:
                return None
        case inner:
            operator, literal = "", None
    found = _path(inner)
    return None if found is None else (found, operator, literal)


def plain(value: Any) -> Any:
    """JSON data as a plan holds it: lists as tuples."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value


def _expression(text: Template) -> nodes.Node | None:
    if text.kind != "expression" or text.tree is None:
        return None
    assignment = text.tree.body[0]
    assert isinstance(assignment, nodes.Assign)
    return assignment.node


def _path(node: nodes.Node | None) -> Path | None:
    steps: list[str | int] = []
    while True:
        match node:
            case nodes.Name():
                return Path(node.name, tuple(reversed(steps)))
            case nodes.Getattr(node=inner, attr=attribute):
                steps.append(attribute)
            case nodes.Getitem(node=inner, arg=nodes.Const(value=str() | int() as key)):
                steps.append(key)
            case nodes.Getitem(node=inner, arg=nodes.Neg(node=nodes.Const(value=int() as index))):
                steps.append(-index)
            case _:
                return None
        node = inner
