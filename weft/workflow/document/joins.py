"""Checks of joins: the options of each mode, and that it can be met. Runs nothing."""

from __future__ import annotations

from weft.core.errors import BuildError, DuplicateName, JoinError
from weft.workflow.document.remedies import option
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.nodes import JoinNode, MapNode
from weft.workflow.document.unit import Unit

_GOES_WITH = {"k": "quorum", "valid": "first_valid", "otherwise": "best_effort"}


def check_join(unit: Unit, step: JoinNode | MapNode, path: KeyPath) -> None:
    """Check `mode`, `k`, `valid` and `otherwise`. Raises: `BuildError` through `unit.fail`."""
    for key, mode in _GOES_WITH.items():
        if key in step.model_fields_set and step.mode != mode:
            wanted = option(
                "mode", f'"{mode}"' if unit.in_python else mode, in_python=unit.in_python
            )
            hint = f"the mode is {step.mode}; change one"
            error = BuildError(f"`{key}` goes with {wanted}", hint=hint)
            unit.fail(error, (*path, key), at_key=True)
    if step.mode == "quorum" and step.k is None:
        hint = f"say how many: {option('k', '2', in_python=unit.in_python)}"
        unit.fail(JoinError("a quorum needs `k`", hint=hint), (*path, "mode"))
    if isinstance(step, JoinNode):
        _check_branches(unit, step, path)
    elif step.grow is not None:
        _check_growth(unit, step, path)


def _check_growth(unit: Unit, step: MapNode, path: KeyPath) -> None:
    """A result of each item is kept from step to step."""
    if step.mode == "all" or (step.mode == "best_effort" and "otherwise" in step.model_fields_set):
        return
    message = f"a map that grows needs a result of every item, and its mode is {step.mode}"
    hint = "leave `mode` out, or take best_effort with `otherwise`"
    unit.fail(JoinError(message, hint=hint), (*path, "grow"), at_key=True)


def _check_branches(unit: Unit, step: JoinNode, path: KeyPath) -> None:
    for index, name in enumerate(step.join):
        if name in step.join[:index]:
            error = DuplicateName(f"`{name}` is joined twice", hint="name it once")
            unit.fail(error, (*path, "join", index))
    if step.k is not None and step.k > len(step.join):
        hint = f"use at most {len(step.join)}"
        message = f"a quorum of {step.k} of {len(step.join)} branches can never be met"
        unit.fail(JoinError(message, hint=hint), (*path, "k"))
