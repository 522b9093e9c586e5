"""What a run comes to: an outcome for every node, and a verdict in sentences. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.core.errors import Failure, UnknownReference
from weft.core.events import Outcome, RunStatus
from weft.core.ids import NodeId, RunId
from weft.core.values import Usage
from weft.engine.absorption import absorbed, redone
from weft.engine.effects import UnsettledEffect
from weft.engine.scheduler import Scheduler
from weft.engine.state import NodeState

_ENDINGS: Final[Mapping[str, RunStatus]] = {"Cancelled": "cancelled", "StoreError": "failed"}


@dataclass(frozen=True, slots=True)
class RunResult:
    """The end of a run. `outcomes` holds every node, those appended on the way too.

    status      succeeded   nothing is missed; what failed was stood in for or tolerated by a join
                partial     a deadline or a budget ended it, something that may fail did fail, or
                            something is missing of a node's value
                failed      a node failed whose policy says so, or the run could not be recorded
                cancelled   somebody cancelled it
    `reasons` says in sentences what kept the run from plain success. `leaked` names nodes whose
    code did not react to its cancellation within the grace period, `missed` those that failed, or
    that somebody cancelled by name, and that the run did not get over. `unsettled`: calls that must
    not be repeated and that a person has to judge, also of nodes that something stood in for.
    """

    run: RunId
    status: RunStatus
    outcomes: Mapping[NodeId, Outcome] = field(repr=False)  # values may be large
    usage: Usage
    wall_s: float
    reasons: tuple[str, ...] = ()
    leaked: tuple[NodeId, ...] = field(default=())
    missed: tuple[NodeId, ...] = ()
    unsettled: tuple[UnsettledEffect, ...] = ()

    def value(self, node: str) -> object:
        """The value of `node`. Raises `UnknownReference` when it has none, saying why."""
        outcome = self.outcomes.get(NodeId(node))
        if outcome is None:
            raise UnknownReference(f"there is no node {node!r}", hint=f"run {self.run} had none")
        if not outcome.ok:
            why = f": {outcome.failure}" if outcome.failure else ""
            raise UnknownReference(f"{node} was {outcome.status}{why}", node=node)
        return outcome.value


def verdict(
    states: Mapping[NodeId, NodeState], keep: Collection[NodeId], ended_by: Failure | None
) -> tuple[RunStatus, list[str], list[NodeId]]:
    """The status of a run, a sentence for its end and for each failure that it did not get over,
    and whose failures these were."""
    over = absorbed(states, keep)
    status: RunStatus = "succeeded"
    said = [ended_by.message] if ended_by is not None else []
    missed = []
    for state in states.values():
        outcome = state.outcome
        if outcome is not None and outcome.partial and not redone(state):
            said.append(f"{state.node.id} is partial: {outcome.failure}")
            status = "partial" if status == "succeeded" else status
        if outcome is None or outcome.ok or outcome.failure is None or state in over:
            continue
        if outcome.status == "failed" or _is_called_off(state):
            missed.append(state.node.id)
        if outcome.status == "failed":
            said.append(f"{state.node.id} failed: {outcome.failure}")
        if status == "succeeded":
            status = "partial"
        if outcome.status == "failed" and state.node.policy.on_failure == "fail":
            status = "failed"
    if ended_by is not None:
        status = _ENDINGS.get(ended_by.error, "partial")
    return status, said, missed


def _is_called_off(state: NodeState) -> bool:
    """Whether somebody cancelled just this node, and not one that it is inside."""
    return state.by_name and not (state.parent is not None and state.parent.by_name)


def conclude(
    run: RunId,
    scheduler: Scheduler,
    keep: Collection[NodeId],
    complaints: Sequence[str],
    wall_s: float,
    leaked: tuple[NodeId, ...],
    unsettled: tuple[UnsettledEffect, ...] = (),
) -> RunResult:
    """The end of the run that `scheduler` has brought to its end."""
    states = scheduler.states
    status, said, missed = verdict(states, keep, scheduler.ended_by)
    said = [*scheduler.reasons, *said, *map(str, unsettled), *complaints]
    if leaked:
        said.append(f"still running after cancellation: {', '.join(leaked)}")
    ended = {node: state.outcome for node, state in states.items() if state.outcome is not None}
    reasons = tuple(dict.fromkeys(said))
    usage = scheduler.usage
    return RunResult(run, status, ended, usage, wall_s, reasons, leaked, tuple(missed), unsettled)
