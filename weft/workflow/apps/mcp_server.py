"""Workflows as tools of a Model Context Protocol server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from importlib.metadata import version
from typing import Any

from weft.core.errors import BuildError, DuplicateName, ServeError, ToolDenied, WeftError
from weft.core.extras import optional_packages
from weft.core.ports import ModelClient
from weft.core.ports.journal import Journal
from weft.core.redaction import hidden
from weft.workflow.apps.flow_tool import FlowAsks, FlowBegan, FlowOutputs, FlowTool
from weft.workflow.apps.served import RecordingOptions
from weft.workflow.document.spec.settings import Durability
from weft.workflow.flow import Flow
from weft.workflow.runtime.models.factory import Models, ModelSource

with optional_packages("an MCP server", ServeError):
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp.shared.exceptions import MCPError
    from mcp.types import (
        INVALID_PARAMS,
        CallToolRequestParams,
        CallToolResult,
        ListToolsResult,
        PaginatedRequestParams,
        TextContent,
        Tool,
    )

    from weft.serving.asgi import LoopbackServer
    from weft.workflow.apps.elicitation import answer_function

__all__ = ["LoopbackServer", "WorkflowMcpServer"]

Context = ServerRequestContext[Any]
_MOST_SESSIONS = 256
RUN_KEY = "weft/run"
"""The key of the run's id in a result's metadata, for a recorded run."""
QUESTIONS_KEY = "weft/questions"
"""The key of the questions of a run that nobody answered."""


class WorkflowMcpServer:
    """Serves `flows`, each as a tool of its name: inputs are arguments, outputs the result.

        await WorkflowMcpServer([weft.load("brief.yaml")]).serve_stdio()

    Every finished top-level node is reported as progress; a client that cancels a call ends its
    run. A run without all of its outputs is a tool error, with the reason. At most `max_concurrent`
    runs at once; further calls wait. Models are loaded on first use and shared by all runs.

    `models`: as in `Flow.run`; by default those that the workflows declare. With `journal` runs are
    recorded there, with `durability` or each workflow's own, and the metadata of a result has the
    run's id; the journal's owner closes it after `aclose`.

    Questions of a run go to a client that can show them (elicitation). Where nobody answers, the
    run is left, and the result is an error that says what is asked, with the questions in its
    metadata; a recorded run is then continued by `weft answer` and `weft resume`.

    Raises: `BuildError` when a workflow is invalid, or has the name of another.
    """

    def __init__(
        self,
        flows: Sequence[Flow],
        *,
        models: ModelSource | Mapping[str, ModelClient] | None = None,
        max_concurrent: int = 16,
        journal: Journal | None = None,
        durability: Durability | None = None,
    ) -> None:
        if not flows or max_concurrent < 1:
            raise BuildError("an MCP server needs a workflow, and a place for a run")
        self._models = Models()
        recording = RecordingOptions(journal, durability)
        self._tools: dict[str, FlowTool] = {}
        for flow in flows:
            if flow.name in self._tools:
                hint = "the `name` of a workflow is what clients call the tool"
                raise DuplicateName(f"two workflows are called {flow.name!r}", hint=hint)
            self._tools[flow.name] = FlowTool(
                flow, self._models if models is None else models, recording
            )
        self._places = asyncio.Semaphore(max_concurrent)
        self.server: Server[Any] = Server(
            "weft", version=version("weft"), on_list_tools=self._list, on_call_tool=self._call
        )

    async def serve_stdio(self) -> None:
        """Serve one client over this process's stdin and stdout, until it closes stdin.

        Meanwhile stdout belongs to the protocol: other output goes to stderr.
        """
        async with stdio_server() as (read, write):
            options = self.server.create_initialization_options()
            try:
                await self.server.run(read, write, options)
            finally:
                await self.aclose()
                sys.stdout.flush()  # output of tools, while it still goes to stderr

    async def serve_http(
        self,
        hosted: LoopbackServer,
        ready: Callable[[], None] | None = None,
        *,
        origins: Sequence[str] = (),
    ) -> None:
        """Serve streamable HTTP at `/mcp`, until `hosted.stop()`.

        Only requests with this machine as their host are accepted, and of web pages only those of
        `origins`. Raises: `ServeError`.
        """
        names = ("127.0.0.1", "localhost", "[::1]")
        security = TransportSecuritySettings(
            allowed_hosts=[f"{name}:{hosted.port}" for name in names], allowed_origins=list(origins)
        )
        app = self.server.streamable_http_app(
            transport_security=security, max_sessions=_MOST_SESSIONS
        )
        try:
            await hosted.serve(app, ready)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Cancel all runs, and close the models."""
        for tool in self._tools.values():
            await tool.aclose()
        await self._models.aclose()

    async def _list(self, _: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(
            tools=[
                Tool(
                    name=tool.spec.name,
                    description=tool.spec.description or None,
                    input_schema=dict(tool.spec.parameters),
                    output_schema=dict(tool.spec.result or {}),
                )
                for tool in self._tools.values()
            ]
        )

    async def _call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name!r}")
        metadata: dict[str, Any] = {}
        try:
            async with self._places:
                outputs = await self._outputs(tool, params.arguments or {}, context, metadata)
        except WeftError as error:
            return CallToolResult(
                content=[_text(hidden(str(error)))], is_error=True, _meta=metadata or None
            )
        outputs = hidden(outputs)
        text = json.dumps(outputs, ensure_ascii=False)
        return CallToolResult(
            content=[_text(text)], structured_content=outputs, _meta=metadata or None
        )

    async def _outputs(
        self, tool: FlowTool, arguments: Mapping[str, Any], context: Context, meta: dict[str, Any]
    ) -> dict[str, Any]:
        """The outputs of a run. Reports progress to the client, and the run's id in `meta`."""
        answer = answer_function(context.session)
        async with aclosing(tool.call(arguments, answer)) as steps:
            async for step in steps:
                match step:
                    case FlowBegan(run=run):
                        meta[RUN_KEY] = run
                    case FlowOutputs(values=values):
                        return dict(values)
                    case FlowAsks():
                        meta[QUESTIONS_KEY] = list(step.questions)
                        raise ToolDenied(_asking(step))
                    case _:
                        await context.session.report_progress(step.ended, step.nodes, step.line)
        raise AssertionError("a run ends with outputs or an error")


def _asking(step: FlowAsks) -> str:
    """What a left run asks, and how to answer it."""
    lines = [f"{each['node']} asks: {each['question']}" for each in step.questions]
    if not step.recorded:
        return "\n".join([*lines, "nobody can answer here, and the run is not recorded"])
    answers = [f"weft answer {step.run} {each['node']} VALUE" for each in step.questions]
    return "\n".join([*lines, f"the run {step.run} waits:", *answers, f"weft resume {step.run}"])


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)
