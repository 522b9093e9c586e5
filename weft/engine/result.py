"""What a run comes to: an outcome for every node, and a verdict in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from weft.core.errors import Failure, UnknownReference
from weft.core.events import Outcome, RunStatus
from weft.core.ids import NodeId, RunId
from weft.core.values import Usage
from weft.engine.state import NodeState


@dataclass(frozen=True, slots=True)
class RunResult:
    """The end of a run. `outcomes` holds every node, those appended on the way too.

    status      succeeded   nothing is missing
                partial     a deadline or a budget ended it, or something that may fail did fail
                failed      a node failed whose policy says so
                cancelled   somebody cancelled it
    `reasons` says in sentences what kept the run from plain success. `leaked` names nodes whose
    code did not react to its cancellation within the grace period.
    """

    run: RunId
    status: RunStatus
    outcomes: Mapping[NodeId, Outcome]
    usage: Usage
    wall_s: float
    reasons: tuple[str, ...] = ()
    leaked: tuple[NodeId, ...] = field(default=())

    def value(self, node: str) -> object:
        """The value of `node`. Raises `UnknownReference` when it has none, saying why."""
        outcome = self.outcomes.get(NodeId(node))
        if outcome is None:
            raise UnknownReference(f"there is no node {node!r}", hint=f"run {self.run} had none")
        if not outcome.ok:
            why = f": {outcome.failure}" if outcome.failure else ""
            raise UnknownReference(f"{node} was {outcome.status}{why}", node=node)
        return outcome.value


def status(states: Iterable[NodeState], ended_by: Failure | None) -> RunStatus:
    """The verdict over all nodes."""
    if ended_by is not None:
        return "cancelled" if ended_by.error == "Cancelled" else "partial"
    verdict: RunStatus = "succeeded"
    for state in states:
        outcome = state.outcome
        if outcome is None or outcome.ok or outcome.failure is None or _absorbed(state):
            continue
        if outcome.status == "failed" and state.node.policy.on_failure == "fail":
            return "failed"
        verdict = "partial"
    return verdict


def reasons(states: Sequence[NodeState], ended_by: Failure | None) -> list[str]:
    """One sentence for the end of the run, and one for each failure that was not absorbed."""
    said = [ended_by.message] if ended_by is not None else []
    for state in states:
        outcome = state.outcome
        if outcome is not None and outcome.status == "failed" and not _absorbed(state):
            said.append(f"{state.node.id} failed: {outcome.failure}")
    return said


def _absorbed(state: NodeState) -> bool:
    """True when something succeeded without this node: a join, a retry, or what stands in."""
    child, scope = state, state.parent
    while scope is not None and not child.tolerated:
        outcome = scope.outcome
        if outcome is not None and outcome.ok:
            again = child.born != scope.attempt
            if again or outcome.via in ("default", "fallback"):
                return True
        child, scope = scope, scope.parent
    return child.tolerated
