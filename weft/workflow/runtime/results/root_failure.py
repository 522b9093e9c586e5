"""The node whose failure is the first cause of a missing output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from weft.core.errors import WeftError
from weft.core.events import Outcome
from weft.core.ids import NodeId
from weft.workflow.compile.reducers import writes_id
from weft.workflow.document.spec.nodes import BaseNode, JoinNode
from weft.workflow.document.templates import inner_names, names_of

CUT_OFF: Final = "Upstream"
"""The failure of a node that did not run because one before it failed."""
_JOINED: Final = "JoinUnsatisfied"

Outcomes = Mapping[NodeId, Outcome]


def root_failure(
    steps: Mapping[str, BaseNode], outcomes: Outcomes, names: Iterable[str]
) -> NodeId | None:
    """The node that failed first among those that the nodes `names` need; None: none failed."""
    node = _failed(outcomes, names)
    visited: set[NodeId] = set()
    while node is not None and node not in visited:
        visited.add(node)
        failure = outcomes[node].failure
        before = _failed(outcomes, _sources(node, steps))
        if failure is None or failure.error != CUT_OFF or before is None:
            return node
        node = before
    return None


def innermost(node: NodeId, errors: Mapping[NodeId, WeftError]) -> NodeId:
    """The node inside `node`, a map or another container, whose error it reports; or itself."""
    error = errors.get(node)
    if error is None:
        return node
    for inner, cause in errors.items():
        inside = inner.startswith((f"{node}/", f"{node}["))
        told = error.failure().error == _JOINED or cause.message in error.message
        if inside and told:
            return innermost(inner, errors)
    return node


def _failed(outcomes: Outcomes, names: Iterable[str]) -> NodeId | None:
    for name in sorted(names):
        outcome = outcomes.get(NodeId(name))
        if outcome is not None and not outcome.ok and outcome.failure is not None:
            return NodeId(name)
    return None


def _sources(node: str, steps: Mapping[str, BaseNode]) -> set[str]:
    if node not in steps:  # of the workflow's state
        writer, _, what = node.rpartition(".")
        return {writer} if what == "writes" else {writes_id(NodeId(name)) for name in steps}
    step = steps[node]
    joined = step.join if isinstance(step, JoinNode) else ()
    return {*names_of(step), *inner_names(step), *step.after, *joined}
