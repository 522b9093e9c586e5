"""A template of nodes that is instantiated once per map item, loop iteration, branch or call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.ids import NodeId
from weft.engine.node import Grow, Node, Then


@dataclass(frozen=True, slots=True)
class Fragment:
    """One instance of a body. `result`, one of `nodes` or a node outside, carries its value."""

    nodes: tuple[Node, ...]
    result: NodeId


Body = Callable[[NodeId, Mapping[str, Any]], Fragment]
"""(scope, bindings) -> nodes whose ids lie inside `scope`; a single node may be `scope` itself.

A binding is a plain value, or an `Edge` that the nodes that use it must take: the value is then
still being computed.
"""


def grow_one(fragment: Fragment, then: Then | None = None) -> Grow:
    """Append `fragment` and go on with its value (as it is, without `then`)."""
    return Grow(fragment.nodes, (fragment.result,), then or _only)


async def _only(_: object, values: list[Any]) -> Any:
    return values[0]
