"""Which failures a run got over: something that needed the node succeeded without it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from weft.core.events import SUBSTITUTES
from weft.core.ids import NodeId
from weft.engine.state import NodeState


def absorbed(states: Mapping[NodeId, NodeState], keep: Collection[NodeId]) -> set[NodeState]:
    """The nodes without a value that nobody missed.

    A node is absorbed when an enclosing node succeeded without it (by its join, in a later attempt,
    or because something stood in), or when all that needs it was satisfied without it: joins that
    tolerate losses, or nodes that are absorbed themselves. What is inside a node that is absorbed
    is absorbed with it. Nodes in `keep` are always missed.
    """
    ended = [(state, state.outcome) for state in states.values() if state.outcome is not None]
    lost = {state for state, outcome in ended if outcome.status != "succeeded"}
    if not lost:
        return set()
    inside = {state for state in lost if _scope_did_without(state)}
    over = inside | _consumers_did_without(states, {s for s in lost if s.node.id not in keep})
    return {state for state in lost if not over.isdisjoint(_scopes(state))}


def _scopes(state: NodeState | None) -> Iterator[NodeState]:
    while state is not None:
        yield state
        state = state.parent


def redone(state: NodeState) -> bool:
    """Whether a node that `state` is inside did its work again in a later attempt."""
    return any(
        scope.parent is not None and scope.born != scope.parent.attempt for scope in _scopes(state)
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
    """Walk from satisfied tolerant joins back over lost nodes that nobody else misses."""
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
