"""That a join can be decided, and says nothing that its mode does not use."""

from __future__ import annotations

from weft.core.errors import BuildError, DuplicateName, JoinError
from weft.workflow.document.leaves import JoinNode
from weft.workflow.document.nodes import MapNode
from weft.workflow.source import Path
from weft.workflow.unit import Unit

_GOES_WITH = {"k": "quorum", "valid": "first_valid", "otherwise": "best_effort"}


def check_join(unit: Unit, step: JoinNode | MapNode, path: Path) -> None:
    """Check `mode`, `k`, `valid` and `otherwise`. Raises: `BuildError` through `unit.fail`."""
    for key, mode in _GOES_WITH.items():
        if key in step.model_fields_set and step.mode != mode:
            error = BuildError(
                f"`{key}` goes with `mode: {mode}`", hint=f"the mode is {step.mode}; change one"
            )
            unit.fail(error, (*path, key), at_key=True)
    if step.mode == "quorum" and step.k is None:
        unit.fail(JoinError("a quorum needs `k`", hint="say how many: `k: 2`"), (*path, "mode"))
    if isinstance(step, JoinNode):
        _check_branches(unit, step, path)


def _check_branches(unit: Unit, step: JoinNode, path: Path) -> None:
    for index, name in enumerate(step.join):
        if name in step.join[:index]:
            error = DuplicateName(f"`{name}` is joined twice", hint="name it once")
            unit.fail(error, (*path, "join", index))
    if step.k is not None and step.k > len(step.join):
        hint = f"use at most {len(step.join)}"
        message = f"a quorum of {step.k} of {len(step.join)} branches can never be met"
        unit.fail(JoinError(message, hint=hint), (*path, "k"))
