"""Why a run has no answer, as an error that names the node where it began. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weft.core.errors import (
    BudgetExceeded,
    Cancelled,
    ContextLengthExceeded,
    Failure,
    LoopLimit,
    MachineBusy,
    ModelOutputError,
    ModelOverloaded,
    ModelTimeout,
    ModelUnavailable,
    NodeFailed,
    NodeLimit,
    StoreError,
    WeftError,
)
from weft.core.ids import NodeId
from weft.workflow.document import Document
from weft.workflow.document.leaves import JoinNode
from weft.workflow.document.step import Step
from weft.workflow.expressions import value_template
from weft.workflow.result import FlowResult
from weft.workflow.uses import inner_names, names_of

_KINDS: Mapping[str, type[WeftError]] = {
    kind.__name__: kind
    for kind in (
        BudgetExceeded,
        Cancelled,
        ContextLengthExceeded,
        LoopLimit,
        MachineBusy,
        ModelOutputError,
        ModelOverloaded,
        ModelTimeout,
        ModelUnavailable,
        NodeLimit,
        StoreError,
    )
}
_CALLERS = frozenset({"ContextLengthExceeded"})
_LATE = frozenset({"DeadlineExceeded", "NodeTimeout"})
_CUT_OFF = "Upstream"


def check_result(document: Document, result: FlowResult, wanted: Iterable[str]) -> None:
    """Raises: why one of the outputs `wanted` is not there, or else why the run failed."""
    for output in wanted:
        if output in result.missing:
            raise _why_missing(document, result, output)
    if result.status in ("failed", "cancelled"):
        raise _why_failed(result)


def _why_missing(document: Document, result: FlowResult, output: str) -> WeftError:
    """The failure of a node that `output` needs: of the one that failed first."""
    node = _failed(result, value_template(document.outputs[output]).names)
    seen: set[NodeId] = set()
    while node is not None and node not in seen:
        seen.add(node)
        failure = result.outcomes[node].failure
        assert failure is not None
        before = _failed(result, _sources(document.nodes[node]))
        if failure.error != _CUT_OFF or before is None:
            return caller_fault(result, node) or error_of(failure, node)
        node = before
    return NodeFailed(f"there is no {output}: {result.missing[output]}")


def _why_failed(result: FlowResult) -> WeftError:
    """The first failure that the run did not get over."""
    for node, outcome in result.outcomes.items():
        if outcome.failure is not None and f"{node} failed: {outcome.failure}" in result.reasons:
            return caller_fault(result, node) or error_of(outcome.failure, node)
    return NodeFailed("; ".join(result.reasons) or f"the run {result.status}")


def caller_fault(result: FlowResult, node: NodeId) -> WeftError | None:
    """The failure inside `node`, a container or an agent, that is about what the caller sent."""
    for inner, outcome in result.outcomes.items():
        failure = outcome.failure
        if failure is not None and failure.error in _CALLERS and _within(inner, node):
            return error_of(failure, inner)
    return None


def _within(inner: str, node: str) -> bool:
    return inner == node or inner.startswith((f"{node}/", f"{node}["))


def _failed(result: FlowResult, names: Iterable[str]) -> NodeId | None:
    for name in sorted(names):
        outcome = result.outcomes.get(NodeId(name))
        if outcome is not None and not outcome.ok and outcome.failure is not None:
            return NodeId(name)
    return None


def _sources(step: Step) -> set[str]:
    joined = step.join if isinstance(step, JoinNode) else ()
    return {*names_of(step), *inner_names(step), *step.after, *joined}


def error_of(failure: Failure, node: NodeId) -> WeftError:
    """What went wrong in `node`, as an error that callers of a model know how to take."""
    if failure.error in _LATE:
        return ModelTimeout(failure.message, node=node)
    kind = _KINDS.get(failure.error)
    if kind is not None:
        return kind(failure.message, hint=failure.hint, node=node)
    return NodeFailed(str(failure), node=node)
