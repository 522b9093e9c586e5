"""One call of a tool as a node, and how long it took. Knows no way."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from weft.core.ids import NodeId
from weft.engine.cassette import GuardedTools
from weft.engine.node import Inputs, Node, NodeContext, Policy
from weft.planner.routing.graph import RoutedTool
from weft.planner.routing.router import Router


class Stopwatch:
    """How long the last attempt of each tool took, waiting for slots not counted."""

    def __init__(self) -> None:
        self._started_s: dict[str, float] = {}
        self._ended_s: dict[str, float] = {}

    def start(self, tool: str) -> None:
        """A call of `tool` begins."""
        self._started_s[tool] = asyncio.get_running_loop().time()
        self._ended_s.pop(tool, None)

    def stop(self, tool: str) -> None:
        """It is over."""
        self._ended_s[tool] = asyncio.get_running_loop().time()

    def took_s(self, tool: str) -> float:
        """Seconds from its beginning to its end, or until now; 0 when it never began."""
        now_s = asyncio.get_running_loop().time()
        return self._ended_s.get(tool, now_s) - self._started_s.get(tool, now_s)


def call_node(
    node: NodeId,
    tool: RoutedTool,
    arguments: Mapping[str, Any],
    router: Router,
    stopwatch: Stopwatch,
) -> Node:
    """A node that calls `tool`. Its failure is a matter of the node around it."""

    tools = GuardedTools(router.tools)

    async def work(context: NodeContext, _: Inputs) -> Any:
        stopwatch.start(tool.name)
        try:
            with router.logs(context.log):
                return await tools.call(tool.tool, arguments)
        finally:
            stopwatch.stop(tool.name)

    policy = Policy(
        timeout_s=tool.timeout_s, retry=tool.retry, on_failure="skip", resource=tool.resource
    )
    return Node(node, work, policy=policy, kind="tool")
