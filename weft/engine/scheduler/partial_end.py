"""What is kept of a join when a budget or a time limit ends it: the branches that finished."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from weft.core.errors import Failure
from weft.core.events import Outcome
from weft.core.ids import NodeId
from weft.engine.graph.join import JoinCount
from weft.engine.graph.node import MISSING, Join
from weft.engine.scheduler.inputs import joined_values
from weft.engine.scheduler.state import NodePhase, NodeState

LIMITS: Final = frozenset(("BudgetExceeded", "DeadlineExceeded"))
"""The errors that end a run with what it has."""


def finished_part(
    state: NodeState, states: Mapping[NodeId, NodeState], failure: Failure
) -> Outcome | None:
    """The end of `state` with those branches that finished; None: it has nothing to keep.

    Only a best-effort join keeps them: of an expansion whose value is the list, or of a node with
    counted losses that has not started. Everything that it waits for has ended. `failure` ended
    the branches that are not there yet.
    """
    found = _joined(state)
    if found is None or state.via:
        return None
    join, sources = found
    count = JoinCount(join, sources)
    verdict, unborn, finished = None, Outcome("cancelled", None, failure), False
    for source in count.sources:
        known = states.get(source)
        outcome = unborn if known is None or known.outcome is None else known.outcome
        verdict = count.arrive(source, outcome)
        finished = finished or outcome.ok
    if verdict is None or verdict.failure is not None:
        return None
    if not finished and join.default is MISSING:
        return None
    values = joined_values([won for won in verdict.winners if won in states], join, states)
    unborn_count = sum(won not in states for won in verdict.winners)
    values += [join.default] * (unborn_count if join.default is not MISSING else 0)
    lost = count.lost
    via = "default" if lost is not None and join.default is not MISSING else state.via
    return Outcome("succeeded", values, lost, max(1, state.attempt), via)


def _joined(state: NodeState) -> tuple[Join, list[NodeId]] | None:
    """The best-effort join that `state` waits for, and its branches."""
    growth, join = state.growth, state.node.join
    if state.phase is NodePhase.WAITING and growth is not None:
        grow = growth.grow
        is_list = grow.join.mode == "best_effort" and grow.then is None
        return (grow.join, list(grow.results)) if is_list else None
    if _is_open_join(state):
        return join, list(dict.fromkeys(edge.source for edge in state.node.edges))
    return None


def _is_open_join(state: NodeState) -> bool:
    join = state.node.join
    return state.phase is NodePhase.PENDING and join.mode == "best_effort" and bool(join.counts)


def end_order(
    states: Iterable[NodeState], sources: Callable[[NodeState], list[NodeState]]
) -> Iterator[NodeState]:
    """`states`, the last first, but a join that may keep its branches after these.

    The caller ends each before it takes the next. `states` have what is inside them behind them.
    """
    left = list(states)
    seen: set[NodeState] = set()
    while left:
        state = left.pop()
        if state not in seen and _is_open_join(state):
            seen.add(state)
            left.append(state)
            for source in sources(state):
                if source.phase is not NodePhase.ENDED:
                    left += [source, *reversed(source.inside())]
        else:
            yield state
