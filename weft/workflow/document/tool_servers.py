"""Tool servers of a document: opened on first use, closed with the run.

A tool of the server `files` is written `files.read_file`; models call it `files_read_file`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from weft.agents.untrusted import identifier
from weft.core.errors import BuildError
from weft.core.ports import ToolRunner
from weft.workflow.document.spec.declarations import McpUse, OpenApiUse, ToolUse
from weft.workflow.document.unit import ONLY_PYTHON, Unit, file_beside

if TYPE_CHECKING:
    from weft.agents.mcp import McpServer
    from weft.agents.memory import Memory, MemoryTools
    from weft.agents.openapi import OpenApiTools


class ToolServer(ToolRunner, Protocol):
    """A tool runner that must be started before its tools are known, and closed."""

    async def start(self) -> None:
        """Start it, unless it is running. Raises: `ToolError`, `BuildError`."""

    async def aclose(self) -> None:
        """Stop it. Calls in progress fail."""


def sources_in(unit: Unit) -> list[str]:
    """The names of the servers that `unit` declares."""
    return [name for name, declared in unit.document.tools.items() if declared.is_source]


def source_of(unit: Unit, text: str) -> tuple[str, str] | None:
    """The declared server that `text` names, and its tool (empty for the server alone); or None."""
    name, _, tool = text.partition(".")
    declared = unit.document.tools.get(name)
    if declared is None or not declared.is_source:
        return None
    return name, tool


def server_tool_name(name: str, tool: str) -> str:
    """The name by which models and tool runners call the tool `tool` of the server `name`."""
    return f"{name}_{identifier(tool)}"


def open_source(unit: Unit, name: str) -> ToolServer:
    """The tools of the server that `unit` declares as `name`, not yet started.

    Raises: `BuildError` where the declaration, the environment or a package is at fault.
    """
    declared = unit.document.tools[name]
    if declared.openapi is not None:
        return _described(unit, name, declared.openapi)
    if declared.memory is not None:
        return _memory(unit, name, declared)
    from weft.agents.mcp import McpTools

    return McpTools(_server(unit, name), prefix=f"{name}_")


def check_source(unit: Unit, name: str) -> None:
    """Check the server that `unit` declares as `name`, without starting it.

    Raises: `BuildError`, with the position.
    """
    declared = unit.document.tools[name]
    try:
        if declared.openapi is not None:
            _described(unit, name, declared.openapi)
        elif declared.memory is not None:
            _memory(unit, name, declared)  # opens nothing
        else:
            _server(unit, name)
    except BuildError as error:
        unit.fail(error, ("tools", name, declared.origin), at_key=True)


def is_known(unit: Unit, name: str) -> bool:
    """True when the tools of the server `name` are known before it is started."""
    return unit.document.tools[name].mcp is None


def _described(unit: Unit, name: str, spec: OpenApiUse) -> OpenApiTools:
    from weft.agents.openapi import OpenApiOptions, OpenApiTools

    given: dict[str, Any] = {
        "base_url": spec.base_url,
        "auth_env": spec.auth_env.get("", spec.auth_env) if spec.auth_env else None,
        "private": tuple(spec.private),
        "timeout_s": spec.timeout,
        "retries": spec.retries,
        "max_bytes": spec.max_result,
        "pure": spec.pure,
        "effects": unit.document.tools[name].effects,
    }
    options = OpenApiOptions(**{key: value for key, value in given.items() if value is not None})
    document = file_beside(unit, spec.document)
    return OpenApiTools(document, spec.operations, options, prefix=f"{name}_")


def _memory(unit: Unit, name: str, declared: ToolUse) -> MemoryTools:
    from weft.agents.memory import Memory, MemoryTools
    from weft.agents.user_folder import memory_path

    prefix, only = f"{name}_", tuple(declared.only)
    if isinstance(declared.memory, str) and declared.memory.startswith(ONLY_PYTHON):
        given = unit.functions.get(declared.memory)
        if given is None:
            hint = "run the Python program that has it"
            raise BuildError(f"the memory `{name}` exists only in Python", hint=hint)
        memory: Memory = given()
        return MemoryTools(memory, prefix, only)
    path = memory_path(name)
    if isinstance(declared.memory, str):
        path = file_beside(unit, declared.memory, "keep the memory beside the workflow")
    if declared.search is None:
        return MemoryTools(Memory(path), prefix, only, owns=True)
    from weft.serving.openai.embeddings import OpenAIEmbeddings

    spec = declared.search
    try:
        client = OpenAIEmbeddings(spec.base_url, spec.model, api_key_env=spec.api_key_env)
    except ValueError as error:
        raise BuildError(str(error)) from error
    return MemoryTools(Memory(path, client), prefix, only, owns=True, embedder=client)


def _server(unit: Unit, name: str) -> McpServer:
    from weft.agents.mcp import McpServer

    declared = unit.document.tools[name]
    assert declared.mcp is not None
    return McpServer(name, folder=unit.folder, **_settings(declared, declared.mcp))


def _settings(declared: ToolUse, spec: McpUse) -> dict[str, Any]:
    """The declared settings; others keep the defaults of `McpServer`."""
    given: dict[str, Any] = {
        "url": spec.url,
        "command": tuple(spec.command or ()),
        "env_from": tuple(spec.env_from),
        "headers_from": spec.headers_from,
        "api_key_env": spec.api_key_env,
        "only": tuple(declared.only),
        "timeout_s": spec.timeout,
        "start_timeout_s": spec.start_timeout,
        "max_result_bytes": spec.max_result,
        "restarts": spec.restarts,
        "effects": declared.effects,
    }
    return {key: value for key, value in given.items() if value is not None}
