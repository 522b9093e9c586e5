"""The port's suite over an MCP server in this process: the SDK's server, its client, and ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from mcp.client._memory import InMemoryTransport
from mcp.server.lowlevel import Server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

from tests.conformance.tool_runner import ToolRunnerConformance, fail, fail_later, stop
from weft.agents.mcp import McpServer, McpTools
from weft.agents.tools import Toolbox, tool
from weft.core.errors import ToolRaised, WeftError
from weft.core.values import ToolSpec


def served(box: Toolbox) -> Server[Any]:
    """The tools of `box` as an MCP server; values that are no objects are wrapped, as is usual."""

    async def listed(_: Any, __: Any) -> ListToolsResult:
        return ListToolsResult(tools=[described(spec) for spec in box.specs()])

    async def called(_: Any, params: Any) -> CallToolResult:
        try:
            value = await box.call(params.name, params.arguments or {})
        except WeftError as error:
            return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
        return CallToolResult(content=[], structured_content={"result": value})

    return Server("box", on_list_tools=listed, on_call_tool=called)


def described(spec: ToolSpec) -> Tool:
    output = {"type": "object", "properties": {"result": spec.result}, "required": ["result"]}
    return Tool(
        name=spec.name,
        description=spec.description,
        input_schema=dict(spec.parameters),
        output_schema=output,
    )


class OverMcp:
    """A runner for a suite that opens and closes nothing: connects for every call."""

    def __init__(self, *functions: Callable[..., Any]) -> None:
        self._box = Toolbox(*(tool(function) for function in functions))

    def connected(self) -> McpTools:
        server = McpServer("box", command=("not", "started"))
        return McpTools(server, transport=lambda _: InMemoryTransport(served(self._box)))

    def specs(self) -> tuple[ToolSpec, ...]:
        async def main() -> tuple[ToolSpec, ...]:
            async with self.connected() as tools:
                return tools.specs()

        return asyncio.run(main())

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        async with self.connected() as tools:
            return await tools.call(name, arguments)


class TestMcpTools(ToolRunnerConformance):
    def make(self, *functions: Callable[..., Any]) -> OverMcp:
        return OverMcp(*functions)

    @pytest.mark.parametrize("function", [fail, fail_later])
    def test_what_a_tool_raises_is_told_with_its_cause(self, function: Callable[..., Any]) -> None:
        """Over a wire the cause is only its words."""
        with pytest.raises(ToolRaised, match="ValueError: no luck") as raised:
            self.call(function, reason="no luck")
        assert not raised.value.retryable

    def test_our_own_errors_pass_unchanged(self) -> None:
        """Over a wire all errors of a tool are of one kind."""
        with pytest.raises(ToolRaised, match="stopped on purpose"):
            self.call(stop)

    def test_cancelling_the_caller_cancels_the_tool(self) -> None:
        """Here the tool begins some turns of the loop later."""
        seen: list[str] = []
        began = asyncio.Event()

        async def wait() -> None:
            """Wait for ever."""
            began.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        async def main() -> None:
            async with self.make(wait).connected() as tools:
                task = asyncio.ensure_future(tools.call("wait", {}))
                await began.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                for _ in range(100):  # the server hears of it, without anybody waiting for that
                    await asyncio.sleep(0)
                assert seen == ["cancelled"]

        asyncio.run(main())
