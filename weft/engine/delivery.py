"""What a node receives: the values of its inputs, or of the children it waited for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.core.ids import NodeId
from weft.engine.node import MISSING, Join, Streamed
from weft.engine.state import NodeState

States = Mapping[NodeId, NodeState]


def inputs(state: NodeState, states: States) -> dict[str, Any]:
    """The constants and input values of a node that starts, under the names of its edges."""
    node = state.node
    values, default = dict(node.given), node.join.default
    won = state.winners
    for edge in node.edges:
        name = edge.name
        if name and (won is None or edge.source in won):
            source = states[edge.source]
            outcome = source.outcome
            if edge.stream and (streamed := _streamed(source)) is not None:
                values[name] = streamed
            elif outcome is not None and outcome.status == "succeeded":
                values[name] = outcome.value
            elif default is not MISSING:
                values[name] = default
    return values


def joined(winners: Sequence[NodeId], join: Join, states: States) -> list[Any]:
    """The values of the children that a join decided for, in declared order."""
    values = [_value(states[child], join.default) for child in winners]
    return [value for value in values if value is not MISSING]


def _streamed(source: NodeState) -> Streamed | None:
    if not source.streams or (source.outcome is not None and source.outcome.ok):
        return None
    assert source.growth is not None
    return Streamed(source.growth.grow.results)


def _value(source: NodeState, default: Any) -> Any:
    outcome = source.outcome
    return outcome.value if outcome is not None and outcome.status == "succeeded" else default
