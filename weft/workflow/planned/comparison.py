"""Conditions that a plan can say: a reference, by itself or compared with a literal.

Reads Jinja's syntax tree; evaluates nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jinja2 import nodes

from weft.planner.plan.plan import Operator
from weft.workflow.expressions import Reference, Template

_OPERATORS: Final[Mapping[str, Operator]] = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "lteq": "<=",
    "gt": ">",
    "gteq": ">=",
}


def comparison(condition: Template) -> tuple[Reference, Operator, Any] | None:
    """The reference, the operator and the literal (lists as tuples); None for anything else."""
    if condition.kind != "expression" or condition.tree is None or len(condition.references) != 1:
        return None
    if condition.path is not None:
        return condition.path, "", None
    assignment = condition.tree.body[0]
    assert isinstance(assignment, nodes.Assign)
    path = condition.references[0]
    match assignment.node:
        case nodes.Not(node=inner) if _is_path(inner):
            return path, "not", None
        case nodes.Compare(expr=left, ops=[nodes.Operand(op=op, expr=right)]):
            if op not in _OPERATORS or not _is_path(left):
                return None
            try:
                return path, _OPERATORS[op], _plain(right.as_const())
            except nodes.Impossible:
                return None
        case _:
            return None


def _is_path(expression: nodes.Node) -> bool:
    while isinstance(expression, (nodes.Getattr, nodes.Getitem)):
        expression = expression.node
    return isinstance(expression, nodes.Name)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return tuple(map(_plain, value)) if isinstance(value, (list, tuple)) else value
