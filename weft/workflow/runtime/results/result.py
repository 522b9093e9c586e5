"""The result of a run: outputs, and the error that names the node where a run failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Generic

from pydantic import ValidationError
from typing_extensions import TypeVar

from weft.core import errors
from weft.core.errors import Failure, ModelTimeout, NodeFailed, WeftError
from weft.core.events import Outcome, RunStatus
from weft.core.ids import NodeId, RunId
from weft.core.questions import PendingQuestion
from weft.core.values import Usage
from weft.engine import RunResult
from weft.engine.scheduler.effects import UnsettledEffect
from weft.workflow.compile.reducers import final_state
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.expressions import ValueTemplate, value_template
from weft.workflow.document.python_types import PythonTypes, first_error, rebuilt, whole
from weft.workflow.runtime.results.root_failure import innermost, root_failure

ANSWER: Final = NodeId("answer")
"""The answering node of a question."""


Out = TypeVar("Out", default=Mapping[str, Any])


@dataclass(frozen=True, slots=True)
class FlowResult(Generic[Out]):
    """The end of a run.

    outputs    the outputs that could be computed, by name; an instance of the flow's type of
               outputs, if it has one and none is missing
    missing    for every other output, the reason why it is missing
    outcomes   how every node ended, dynamic nodes included
    status     succeeded, partial, failed, cancelled or asking; `reasons` say why in sentences
    questions  of a run that is asking: what it waits for. It goes on by `flow.resume`
    unsettled  calls that must not be repeated and whose end is unknown: a person must decide; also
               those of nodes that were replaced
    errors     the exception of each node that failed, also of replaced ones; its `__cause__` is
               what the node's own code raised, with its traceback. Nodes that failed in an earlier
               part of the run have no cause
    causes     for every missing output that a failure is the cause of, the node that failed first
    state      the workflow's state at the end: all recorded writes, also of a run that failed
    """

    run: RunId
    status: RunStatus
    outputs: Out
    missing: Mapping[str, str]
    outcomes: Mapping[NodeId, Outcome]
    usage: Usage
    wall_s: float
    reasons: tuple[str, ...] = ()
    leaked: tuple[NodeId, ...] = field(default=())
    unsettled: tuple[UnsettledEffect, ...] = ()
    errors: Mapping[NodeId, WeftError] = field(default_factory=dict, repr=False, compare=False)
    questions: tuple[PendingQuestion, ...] = ()
    causes: Mapping[str, NodeId] = field(default_factory=dict, repr=False, compare=False)
    state: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        result: RunResult,
        outputs: Any,
        missing: Mapping[str, str],
        causes: Mapping[str, NodeId] | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> FlowResult[Any]:
        """The engine's result of a run, with its outputs and its state."""
        own: dict[str, Any] = {"outputs": outputs, "missing": missing, "causes": causes or {}}
        own["state"] = state or {}
        names = (each.name for each in fields(cls) if each.name not in own)
        return cls(**own, **{name: getattr(result, name) for name in names})

    @property
    def ok(self) -> bool:
        """True when the run succeeded and every output is there."""
        return self.status == "succeeded" and not self.missing

    def __getitem__(self, output: str) -> Any:
        """An output.

        Raises: `KeyError` with the reason why it is missing, the node that failed first and its
        error, which is also the `__cause__`.
        """
        if output in self.missing:
            raise KeyError(f"{output}: {_why_no_output(self, output)}") from _cause(self, output)
        outputs: Any = self.outputs
        return outputs[output] if isinstance(outputs, Mapping) else getattr(outputs, output)


def _cause(result: FlowResult[Any], output: str) -> WeftError | None:
    """The error that is the first cause of a missing output, if one was raised."""
    node = result.causes.get(output)
    return None if node is None else result.errors.get(node)


def _why_no_output(result: FlowResult[Any], output: str) -> str:
    """Why an output is missing, in one line; with the failure that is the first cause."""
    why = result.missing[output]
    node = result.causes.get(output)
    failure = None if node is None else result.outcomes[node].failure
    if failure is not None and not why.startswith(f"{node} "):
        why = f"{why}; {node} failed: {failure.error}: {failure.message}"
    return why.partition("\n")[0]


def output_templates(document: WorkflowDocument) -> dict[str, ValueTemplate]:
    """The templates of a workflow's outputs, by name."""
    return {name: value_template(value) for name, value in document.outputs.items()}


def flow_result(
    document: WorkflowDocument,
    templates: Mapping[str, ValueTemplate],
    inputs: Mapping[str, Any],
    result: RunResult,
) -> FlowResult:
    """The outputs of a finished run, with the engine's result."""
    causes: dict[str, NodeId] = {}
    values = dict(inputs)
    outputs: dict[str, Any] = {}
    missing: dict[str, str] = {}
    status, reasons = result.status, result.reasons
    for name, parsed in templates.items():
        for node in parsed.names - values.keys():
            outcome = result.outcomes.get(NodeId(node))
            if outcome is not None and outcome.ok:
                values[node] = outcome.value
        absent = sorted(parsed.names - values.keys())
        if absent:
            why = (_why(node, result.outcomes.get(NodeId(node))) for node in absent)
            missing[name] = "; ".join(why)
            root = root_failure(document.nodes, result.outcomes, absent)
            if root is not None:
                causes[name] = innermost(root, result.errors)
            continue
        try:
            outputs[name] = parsed.render(values)
        except WeftError as error:
            missing[name] = str(error)
            status = "failed" if status == "succeeded" else status
            reasons = (*reasons, f"the output {name} cannot be computed: {error.message}")
    ended = replace(result, status=status, reasons=reasons)
    state = final_state(document.state, document.nodes, result.outcomes)
    return FlowResult.of(ended, outputs, missing, causes, state)


def typed_result(result: FlowResult, types: PythonTypes) -> FlowResult[Any]:
    """The result with instances of the types that a Python program declared for its outputs."""
    if not types.outputs and types.result is None:
        return result
    values: dict[str, Any] = rebuilt(types.outputs, dict(result.outputs))
    if types.result is None:
        return replace(result, outputs=values)
    if result.missing:
        return replace(result, outputs=IncompleteOutputs(values, result))
    try:
        return replace(result, outputs=whole(types.result, values))
    except ValidationError as error:
        reason = f"the outputs are no {types.result.__name__}: {first_error(error)}"
        outputs = IncompleteOutputs(values)
        reasons = (*result.reasons, reason)
        return replace(result, status="failed", outputs=outputs, reasons=reasons)


class IncompleteOutputs(dict[str, Any]):
    """The outputs of a typed flow that could be computed; the others raise `NodeFailed`."""

    def __init__(self, values: Mapping[str, Any], result: FlowResult[Any] | None = None) -> None:
        super().__init__(values)
        self._result = result

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        result = self._result
        if result is not None and name in result.missing:
            why = f"there is no output {name}: {_why_no_output(result, name)}"
            raise NodeFailed(why) from _cause(result, name)
        raise AttributeError(name)


def no_answer_reason(outcome: Outcome) -> str:
    """Why the answering node gave no answer."""
    return str(outcome.failure or "nothing was answered")


def _why(node: str, outcome: Outcome | None) -> str:
    if outcome is None:
        return f"{node} did not run"
    if outcome.failure is None:
        return f"{node} was left out"
    return f"{node} {outcome.status}: {outcome.failure}"


_KINDS: Mapping[str, type[WeftError]] = {
    name: getattr(errors, name)
    for name in (
        *("BudgetExceeded", "Cancelled", "ContextLengthExceeded", "LoopLimit"),
        *("MachineBusy", "ModelOutputError", "ModelOverloaded", "ModelTimeout"),
        *("ModelUnavailable", "NodeLimit", "StoreError"),
    )
}
"""Errors that callers of a model can handle."""
_CALLERS = frozenset({"ContextLengthExceeded"})
_LATE = frozenset({"DeadlineExceeded", "NodeTimeout"})


def check_result(document: WorkflowDocument, result: FlowResult, wanted: Iterable[str]) -> None:
    """Raises: the reason why one of the outputs `wanted` is missing, or why the run failed."""
    for output in wanted:
        if output in result.missing:
            raise _why_missing(document, result, output)
    if result.status in ("failed", "cancelled"):
        raise _why_failed(result)


def _why_missing(document: WorkflowDocument, result: FlowResult, output: str) -> WeftError:
    """The failure of a node that `output` needs: of the one that failed first."""
    names = value_template(document.outputs[output]).names
    node = root_failure(document.nodes, result.outcomes, names)
    if node is not None:
        failure = result.outcomes[node].failure
        assert failure is not None
        return caller_fault(result, node) or error_of(failure, node)
    return NodeFailed(f"there is no {output}: {result.missing[output]}")


def _why_failed(result: FlowResult) -> WeftError:
    """The first failure that the run did not survive."""
    for node, outcome in result.outcomes.items():
        if outcome.failure is not None and f"{node} failed: {outcome.failure}" in result.reasons:
            return caller_fault(result, node) or error_of(outcome.failure, node)
    return NodeFailed("; ".join(result.reasons) or f"the run {result.status}")


def caller_fault(result: FlowResult, node: NodeId) -> WeftError | None:
    """The failure inside `node`, a container or an agent, that the caller's input caused."""
    for inner, outcome in result.outcomes.items():
        failure = outcome.failure
        if (
            failure is not None
            and failure.error in _CALLERS
            and (inner == node or inner.startswith((f"{node}/", f"{node}[")))
        ):
            return error_of(failure, inner)
    return None


def error_of(failure: Failure, node: NodeId) -> WeftError:
    """A failure of `node` as an error that callers of a model can handle."""
    if failure.error in _LATE:
        return ModelTimeout(failure.message, node=node)
    kind = _KINDS.get(failure.error)
    if kind is not None:
        return kind(failure.message, hint=failure.hint, node=node)
    return NodeFailed(str(failure), node=node)
