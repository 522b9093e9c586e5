"""The result of a run: an outcome for every node, and its status with reasons. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.core.errors import Failure, UnknownReference, WeftError
from weft.core.events import SUBSTITUTES, Outcome, RunStatus
from weft.core.ids import NodeId, RunId
from weft.core.questions import PendingQuestion
from weft.core.recorded_errors import error_of_failure
from weft.core.values import Usage
from weft.engine.graph.join import LOSSES
from weft.engine.graph.node import Join
from weft.engine.scheduler.effects import UnsettledEffect
from weft.engine.scheduler.scheduler import Scheduler
from weft.engine.scheduler.state import NodeState


def absorbed(states: Mapping[NodeId, NodeState], keep: Collection[NodeId]) -> set[NodeState]:
    """The nodes without a value that no result missed.

    A node is absorbed when an enclosing node succeeded without it (by its join, in a later attempt,
    or through a substitute), or when everything that needs it was satisfied without it: joins that
    tolerate losses, or nodes that are absorbed themselves. Nodes inside an absorbed node are
    absorbed too. Nodes in `keep` are always missed.
    """
    ended = [(state, state.outcome) for state in states.values() if state.outcome is not None]
    lost = {state for state, outcome in ended if outcome.status != "succeeded"}
    if not lost:
        return set()
    inside = {state for state in lost if _scope_did_without(state)}
    over = inside | _consumers_did_without(states, {s for s in lost if s.node.id not in keep})
    return {state for state in lost if not over.isdisjoint(state.scopes())}


def redone(state: NodeState) -> bool:
    """Whether a node that encloses `state` ran again in a later attempt."""
    return any(
        scope.parent is not None and scope.born != scope.parent.attempt for scope in state.scopes()
    )


def _scope_did_without(state: NodeState) -> bool:
    child, scope = state, state.parent
    while scope is not None and not child.tolerated:
        outcome = scope.outcome
        if outcome is not None and outcome.ok:
            again = child.born != scope.attempt
            if again or outcome.via in SUBSTITUTES:
                return True
        child, scope = scope, scope.parent
    return child.tolerated


def _consumers_did_without(
    states: Mapping[NodeId, NodeState], lost: set[NodeState]
) -> set[NodeState]:
    """Walk from satisfied tolerant joins back over lost nodes that no other node misses."""
    missing = Counter(edge.source for state in states.values() for edge in state.node.edges)
    for state in states.values():
        if state.growth is not None:
            missing.update(state.growth.grow.results)
    found: set[NodeState] = set()
    doubtful = [state for state in states.values() if _satisfied_by_less(state)]
    while doubtful:
        for edge in doubtful.pop().node.edges:
            source = states[edge.source]
            missing[edge.source] -= 1
            if not missing[edge.source] and source in lost and source not in found:
                found.add(source)
                doubtful.append(source)
    return found


def _satisfied_by_less(state: NodeState) -> bool:
    return state.count is not None and state.outcome is not None and state.outcome.ok


_ENDINGS: Final[Mapping[str, RunStatus]] = {"Cancelled": "cancelled", "StoreError": "failed"}


@dataclass(frozen=True, slots=True)
class RunResult:
    """The end of a run. `outcomes` contains every node, appended ones too.

    status      succeeded   nothing is missed; failures were replaced or tolerated by a join
                partial     a deadline or a budget ended it, something that may fail did fail, or
                            something is missing of a node's value, such as items of a map that
                            nothing replaces
                failed      a node failed whose policy says so, or the run could not be recorded
                cancelled   a caller cancelled it
                asking      it was left, since nobody answers its `questions` here
    `reasons` says in sentences what kept the run from plain success. `leaked` names nodes whose
    code did not react to its cancellation within the grace period, `missed` those whose failure, or
    cancellation by name, the run did not absorb. `unsettled`: calls that must not be repeated and
    that a person has to judge, also of nodes that were replaced. `errors`: the exception of each
    node that failed, also of replaced ones; its `__cause__` is what the node's own code raised.
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
    errors: Mapping[NodeId, WeftError] = field(default_factory=dict, repr=False, compare=False)
    questions: tuple[PendingQuestion, ...] = ()

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
    """The status of a run, a sentence for its end and for each failure that it did not absorb, and
    the nodes that failed so."""
    over = absorbed(states, keep)
    status: RunStatus = "succeeded"
    reasons = [ended_by.message] if ended_by is not None else []
    missed = []
    unpaid: Counter[str] = Counter()
    for state in states.values():
        outcome = state.outcome
        if outcome is None or outcome.failure is None:
            continue
        if outcome.ok:
            loss = None if redone(state) else _loss(state.node.id, outcome)
            reasons += [loss] if loss else []
            status = "partial" if outcome.partial and loss and status == "succeeded" else status
        elif state in over:
            missed += [state.node.id] if _is_lacking(state) else []
        else:
            by_name = _is_cancelled_by_name(state)
            missed += [state.node.id] if outcome.status == "failed" or by_name else []
            reasons += [f"{state.node.id} failed: {outcome.failure}"] * (outcome.status == "failed")
            unpaid[outcome.failure.message] += _is_unpaid(outcome, outcome.failure)
            status = _worse(status, state, outcome)
    if ended_by is not None:
        return _ENDINGS.get(ended_by.error, "partial"), reasons, missed
    reasons += [f"{count} nodes were left out: {why}" for why, count in (+unpaid).items()]
    return status, reasons, missed


def _worse(status: RunStatus, state: NodeState, outcome: Outcome) -> RunStatus:
    """The status of a run that did not absorb this end of `state`."""
    if outcome.status == "failed" and state.node.policy.on_failure == "fail":
        return "failed"
    return "partial" if status == "succeeded" else status


def _loss(node: NodeId, outcome: Outcome) -> str | None:
    """What the join of `node` lacks or replaced in its value; None: nothing."""
    assert outcome.failure is not None
    if outcome.partial:
        return f"{node} is partial: {outcome.failure}"
    if outcome.via == "default" and outcome.failure.error == LOSSES:
        return f"{node} has what stands in: {outcome.failure.message}"
    return None


def _is_unpaid(outcome: Outcome, failure: Failure) -> bool:
    """Whether a node was left out because of a budget that degrades."""
    return outcome.status == "skipped" and failure.error == "BudgetExceeded"


def _is_lacking(state: NodeState) -> bool:
    """Whether a value is partial because `state`, a branch of its join, has no value."""
    parent = state.parent
    if state.tolerated and parent is not None and parent.growth is not None:
        return _counts(parent.growth.grow.join, parent)
    return any(_counts(other.node.join, other) for other in state.dependents or ())


def _counts(join: Join, state: NodeState) -> bool:
    return bool(join.counts) and state.outcome is not None and state.outcome.partial


def _is_cancelled_by_name(state: NodeState) -> bool:
    """Whether the user cancelled just this node, and not one that encloses it."""
    return state.by_name and not (state.parent is not None and state.parent.by_name)


def conclude(
    run: RunId,
    scheduler: Scheduler,
    keep: Collection[NodeId],
    complaints: Sequence[str],
    wall_s: float,
    leaked: tuple[NodeId, ...],
    unsettled: tuple[UnsettledEffect, ...] = (),
    *,
    errors: Mapping[NodeId, WeftError],
    questions: tuple[PendingQuestion, ...] = (),
) -> RunResult:
    """The result of the run that `scheduler` has ended.

    `errors` are the last that nodes raised, `questions` those that the run was left with.
    """
    states = scheduler.states
    status, reasons, missed = verdict(states, keep, scheduler.ended_by)
    if questions:
        status, missed = "asking", []
        reasons = [f"{question.node} asks: {question.question}" for question in questions]
    reasons = [*scheduler.reasons, *reasons, *map(str, unsettled), *complaints]
    if leaked:
        reasons.append(f"still running after cancellation: {', '.join(leaked)}")
    ended = {node: state.outcome for node, state in states.items() if state.outcome is not None}
    failing = {node: end for node, end in ended.items() if end.failure is not None}
    unique = tuple(dict.fromkeys(reasons))
    usage = scheduler.usage
    failed = errors_of(failing, errors)
    rest = leaked, tuple(missed), unsettled, failed, questions
    return RunResult(run, status, ended, usage, wall_s, unique, *rest)


def errors_of(
    outcomes: Mapping[NodeId, Outcome], raised: Mapping[NodeId, WeftError]
) -> dict[NodeId, WeftError]:
    """The error of every node that failed: the exception that it raised, if that is its failure."""
    errors = {}
    for node, outcome in outcomes.items():
        failure = outcome.failure
        if failure is None or not (outcome.status == "failed" or outcome.via in SUBSTITUTES):
            continue
        error = raised.get(node)
        if error is None or error.failure() != failure:
            error = error_of_failure(failure)
            error.node = node
        errors[node] = error
    return errors
