"""Workflows that run themselves: each circle of workflows has a node that bounds its depth."""

from __future__ import annotations

from weft.core.errors import BuildError
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.document import walk
from weft.workflow.document.spec.nodes import WorkflowNode
from weft.workflow.document.unit import Unit


def check_recursion(unit: Unit) -> None:
    """Raises: `BuildError` for a workflow that runs itself without a `max_depth` on the way."""
    _RecursionChecker().check(unit)


class _RecursionChecker:
    """A depth-first walk along the `workflow` nodes that have no bound."""

    def __init__(self) -> None:
        self._done: set[Unit] = set()
        self._stack: list[Unit] = []

    def check(self, unit: Unit) -> None:
        for each in unit.everything():
            self._visit(each)

    def _visit(self, unit: Unit) -> None:
        if unit in self._done:
            return
        self._stack.append(unit)
        for path, step in walk(unit.document.nodes):
            if isinstance(step, WorkflowNode) and step.max_depth is None:
                other = unit.includes[step.workflow]
                if other in self._stack:
                    self._refuse(unit, other, (*path, "workflow"))
                self._visit(other)
        self._stack.pop()
        self._done.add(unit)

    def _refuse(self, unit: Unit, other: Unit, path: KeyPath) -> None:
        circle = [*self._stack[self._stack.index(other) :], other]
        chain = " -> ".join(each.document.name for each in circle)
        hint = "add `max_depth: 20`, which bounds how deep; to repeat, use a `loop` node"
        unit.fail(BuildError(f"the workflow runs itself without a bound: {chain}", hint=hint), path)
