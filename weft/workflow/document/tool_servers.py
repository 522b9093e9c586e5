"""Servers that a document takes tools from: opened when first needed, closed with the run.

A tool of the server `files` is written `files.read_file` and called `files_read_file` by models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from weft.agents.untrusted import identifier
from weft.core.errors import BuildError
from weft.core.ports import ToolRunner
from weft.workflow.document.spec.declarations import McpUse, OpenApiUse, ToolUse
from weft.workflow.document.unit import Unit, file_beside

if TYPE_CHECKING:
    from weft.agents.mcp import McpServer
    from weft.agents.openapi import OpenApiTools


class ToolServer(ToolRunner, Protocol):
    """A tool runner that has to be started before its tools are known, and closed."""

    async def start(self) -> None:
        """Start it unless that is done. Raises: `ToolError`, `BuildError`."""

    async def aclose(self) -> None:
        """End it. Calls under way fail."""


def sources_in(unit: Unit) -> list[str]:
    """The names of the servers that `unit` declares."""
    return [name for name, declared in unit.document.tools.items() if declared.is_source]


def source_of(unit: Unit, text: str) -> tuple[str, str] | None:
    """The declared server that `text` begins with, and the tool of it; or None.

    The tool is empty where `text` is the server alone.
    """
    name, _, tool = text.partition(".")
    declared = unit.document.tools.get(name)
    if declared is None or not declared.is_source:
        return None
    return name, tool


def server_tool_name(name: str, tool: str) -> str:
    """What models and tool runners call the tool `tool` of the server `name`."""
    return f"{name}_{identifier(tool)}"


def open_source(unit: Unit, name: str) -> ToolServer:
    """The tools of the server that `unit` declares as `name`; nothing is started yet.

    Raises: `BuildError` where the declaration, the environment or a package is at fault.
    """
    described = unit.document.tools[name].openapi
    if described is not None:
        return _described(unit, name, described)
    from weft.agents.mcp import McpTools

    return McpTools(_server(unit, name), prefix=f"{name}_")


def check_source(unit: Unit, name: str) -> None:
    """Check the server that `unit` declares as `name`, as far as that goes without starting it.

    Raises: `BuildError`, at its place.
    """
    declared = unit.document.tools[name]
    try:
        if declared.openapi is not None:
            _described(unit, name, declared.openapi)
        else:
            _server(unit, name)
    except BuildError as error:
        unit.fail(error, ("tools", name, declared.origin), at_key=True)


def is_known(unit: Unit, name: str) -> bool:
    """True when the tools of the source `name` are known before anything is started."""
    return unit.document.tools[name].openapi is not None


def _described(unit: Unit, name: str, said: OpenApiUse) -> OpenApiTools:
    from weft.agents.openapi import OpenApiOptions, OpenApiTools

    given: dict[str, Any] = {
        "base_url": said.base_url,
        "auth_env": said.auth_env.get("", said.auth_env) if said.auth_env else None,
        "private": tuple(said.private),
        "timeout_s": said.timeout,
        "retries": said.retries,
        "max_bytes": said.max_result,
        "pure": said.pure,
        "effects": unit.document.tools[name].effects,
    }
    options = OpenApiOptions(**{key: value for key, value in given.items() if value is not None})
    document = file_beside(unit, said.document)
    return OpenApiTools(document, said.operations, options, prefix=f"{name}_")


def _server(unit: Unit, name: str) -> McpServer:
    from weft.agents.mcp import McpServer

    declared = unit.document.tools[name]
    assert declared.mcp is not None
    return McpServer(name, folder=unit.folder, **_settings(declared, declared.mcp))


def _settings(declared: ToolUse, said: McpUse) -> dict[str, Any]:
    """What the document says; the rest stays as `McpServer` has it."""
    given: dict[str, Any] = {
        "url": said.url,
        "command": tuple(said.command or ()),
        "env_from": tuple(said.env_from),
        "headers_from": said.headers_from,
        "api_key_env": said.api_key_env,
        "only": tuple(declared.only),
        "timeout_s": said.timeout,
        "start_timeout_s": said.start_timeout,
        "max_result_bytes": said.max_result,
        "restarts": said.restarts,
        "effects": declared.effects,
    }
    return {key: value for key, value in given.items() if value is not None}
