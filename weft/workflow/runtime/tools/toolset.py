"""The tools of one run, by the names in its documents. Given tools replace declared ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from weft.agents.reuse import ReusingTools
from weft.agents.tools import Tool, Toolbox
from weft.core.errors import ToolNotFound
from weft.core.ports import BoundTool, ToolRunner, bound
from weft.core.suggestion import suggestion
from weft.core.values import ToolSpec
from weft.workflow.document.tool_servers import (
    ToolServer,
    is_known,
    open_source,
    server_tool_name,
    source_of,
)
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.tools.functions import Function, function_of, tool_of

_ANYTHING = {"type": "object"}


class ToolBoundary(Protocol):
    """Stands between a run and its tools: records what passes, or plays it."""

    def tools(self, inner: ToolRunner, source: str = "") -> ToolRunner:
        """What is called in the place of `inner`, the tools of the server `source` if it is one."""

    def source(self, unit: Unit, name: str) -> ToolServer:
        """The server that `unit` declares as `name`, not started."""

    async def listed(self, tools: ToolRunner) -> Sequence[ToolSpec]:
        """The tools of a server that has been started, as `tools` made it."""


class ToolLookup(Protocol):
    """What is known of tools and functions before a run."""

    def spec(self, unit: Unit, text: str) -> ToolSpec:
        """See `Toolset.spec`."""

    def function(self, unit: Unit, reference: str) -> Function:
        """See `Toolset.function`."""


class _DirectBoundary:
    """No border: calls go where they are meant to go."""

    def tools(self, inner: ToolRunner, source: str = "") -> ToolRunner:  # noqa: ARG002 - the port
        return inner

    def source(self, unit: Unit, name: str) -> ToolServer:
        return open_source(unit, name)

    async def listed(self, tools: ToolRunner) -> Sequence[ToolSpec]:
        return tools.specs()


class Toolset:
    """Finds and calls the tools and functions of units; imports each when first needed.

    Servers are started when first needed, too, and ended by `aclose`; what their tools take and
    return is not known before. Identical calls of pure tools are made once, similar ones of tools
    with a batch form together.
    """

    def __init__(self, given: ToolRunner | None = None, border: ToolBoundary | None = None) -> None:
        self._given = given
        self._given_specs = {spec.name: spec for spec in given.specs()} if given else {}
        self._toolbox = Toolbox()
        self._calls: ToolRunner = ReusingTools(self._toolbox)
        self._names: dict[tuple[Unit, str], str] = {}
        self._bound: dict[tuple[Unit, str], BoundTool] = {}
        self._functions: dict[tuple[Unit, str], Function] = {}
        self._sources: dict[tuple[Unit, str], ToolServer] = {}
        self._reused: dict[tuple[Unit, str], ToolRunner] = {}
        self._known: dict[tuple[Unit, str], dict[str, ToolSpec]] = {}
        self._border: ToolBoundary = _DirectBoundary()
        if border is not None:
            self.put(border)

    def put(self, border: ToolBoundary) -> None:
        """Have all calls from now on pass `border`. Before any server is started."""
        self._border = border
        self._bound.clear()
        self._calls = border.tools(self._calls)
        if self._given is not None:
            self._given = border.tools(self._given)
        for (unit, name), tools in self._reused.items():
            self._reused[unit, name] = border.tools(tools, name)

    def spec(self, unit: Unit, text: str) -> ToolSpec:
        """What is known of the tool that `text` means in `unit`.

        Raises: `ToolNotFound` or `BuildError` when it cannot be imported.
        """
        given = self._given_specs.get(_short(text))
        if given is not None:
            return given
        source = source_of(unit, text)
        if source is None:
            return self._tool(unit, text).spec
        name = server_tool_name(*source)
        known = self._listed(unit, source[0])
        if known is None:
            return ToolSpec(name, "", _ANYTHING)
        if name not in known:
            there = suggestion(name, known)
            raise ToolNotFound(f"`{source[0]}` has no tool `{source[1]}`", hint=there)
        return known[name]

    def known(self, unit: Unit, name: str) -> Sequence[ToolSpec]:
        """The tools of the server `name`, as far as they are known without starting it."""
        return tuple((self._listed(unit, name) or {}).values())

    async def offered(self, unit: Unit, texts: Sequence[str]) -> tuple[ToolSpec, ...]:
        """What is known of several tools; the name of a server stands for all of its tools.

        Starts the servers. Raises: `ToolError`, `BuildError`.
        """
        found: dict[str, ToolSpec] = {}
        for text in texts:
            for spec in await self._offer(unit, text):
                found[spec.name] = spec
        return tuple(found.values())

    async def start(self, unit: Unit, name: str) -> ToolServer:
        """The server that `unit` declares as `name`, running. Raises: `ToolError`, `BuildError`."""
        source = self._opened(unit, name)
        await source.start()
        specs = await self._border.listed(self._reused[unit, name])
        self._known[unit, name] = {spec.name: spec for spec in specs}
        return source

    async def aclose(self) -> None:
        """End all servers that were started."""
        closing = [asyncio.create_task(source.aclose()) for source in self._sources.values()]
        if not closing:
            return
        try:
            await asyncio.wait(closing)
        except asyncio.CancelledError:
            for task in closing:  # they end at once then
                task.cancel()
            await asyncio.wait(closing)
            raise

    def replaces(self, name: str) -> bool:
        """True when tools given for the run stand in for those of the server `name`."""
        return any(given.startswith(f"{name}_") for given in self._given_specs)

    def resource(self, unit: Unit, text: str) -> str | None:
        """The class of slots that a call of the tool takes."""
        source = source_of(unit, text)
        if source is not None:
            return source[0]
        declared = text if text in unit.document.tools else None
        if text in unit.document.run.limits or _short(text) in self._given_specs:
            return declared
        return self._tool(unit, text).resource or declared

    @property
    def resources(self) -> frozenset[str]:
        """The classes of slots that the tools used so far name themselves."""
        tools = (self._toolbox.get(name) for name in self._names.values())
        return frozenset(tool.resource for tool in tools if tool.resource is not None)

    async def call(self, unit: Unit, text: str, arguments: Mapping[str, Any]) -> Any:
        """Call the tool. Raises: what `ToolRunner.call` raises."""
        return await self.bound(unit, text)(arguments)

    def bound(self, unit: Unit, text: str) -> BoundTool:
        """Calls of the tool, looked up once.

        Raises: `ToolNotFound` or `BuildError` when it cannot be imported.
        """
        found = self._bound.get((unit, text))
        if found is None:
            found = self._bound[unit, text] = self._lookup(unit, text)
        return found

    def _lookup(self, unit: Unit, text: str) -> BoundTool:
        if self._given is not None and _short(text) in self._given_specs:
            return partial(self._given.call, _short(text))
        source = source_of(unit, text)
        if source is not None:
            return partial(self._call_source, unit, *source)
        self._tool(unit, text)
        return bound(self._calls, self._names[unit, text])

    async def _call_source(
        self, unit: Unit, name: str, tool: str, arguments: Mapping[str, Any]
    ) -> Any:
        await self.start(unit, name)
        return await self._reused[unit, name].call(server_tool_name(name, tool), arguments)

    def function(self, unit: Unit, reference: str) -> Function:
        """The plain function. Raises: `ToolNotFound` or `BuildError`."""
        key = unit, reference
        if key not in self._functions:
            self._functions[key] = function_of(unit, reference)
        return self._functions[key]

    async def _offer(self, unit: Unit, text: str) -> Sequence[ToolSpec]:
        source = source_of(unit, text)
        if source is None or _short(text) in self._given_specs:
            return [self.spec(unit, text)]
        name, tool = source
        if self.replaces(name) and not tool:
            specs = self._given_specs.items()
            return [spec for given, spec in specs if given.startswith(f"{name}_")]
        running = await self.start(unit, name)
        return [self.spec(unit, text)] if tool else running.specs()

    def _opened(self, unit: Unit, name: str) -> ToolServer:
        if (unit, name) not in self._sources:
            source = self._sources[unit, name] = self._border.source(unit, name)
            self._reused[unit, name] = self._border.tools(ReusingTools(source), name)
        return self._sources[unit, name]

    def _listed(self, unit: Unit, name: str) -> Mapping[str, ToolSpec] | None:
        """The tools of a source, or None where they are not known yet."""
        if is_known(unit, name) and (unit, name) not in self._known:
            specs = self._opened(unit, name).specs()
            self._known[unit, name] = {spec.name: spec for spec in specs}
        return self._known.get((unit, name))

    def _tool(self, unit: Unit, text: str) -> Tool[..., Any]:
        key = unit, text
        if key not in self._names:
            tool = tool_of(unit, text)
            name = self._free(_short(text))
            self._toolbox.add(tool, name)
            self._names[key] = name
        return self._toolbox.get(self._names[key])

    def _free(self, name: str) -> str:
        taken = self._toolbox.names
        numbered = (f"{name}_{number}" for number in range(2, len(taken) + 3))
        return name if name not in taken else next(n for n in numbered if n not in taken)


def _short(text: str) -> str:
    """The tool's own name, where `text` is an import path or leads to a tool of a server."""
    return text.rpartition(":")[2].replace(".", "_")


class FlowTools:
    """Implements `ToolRunner` once `start` has imported the functions and started the servers.

    `written` says how a node of the workflow names each tool: `files.read_file` for the
    `files_read_file` of models. `toolset`, which whoever gives it closes, calls them: that of a
    run, say. `only`: no others than these, named as by a node.
    """

    def __init__(
        self, unit: Unit, toolset: Toolset | None = None, only: Sequence[str] | None = None
    ) -> None:
        self.unit = unit
        self.written: dict[str, str] = {}
        self._toolset = toolset or Toolset()
        self._only = tuple(unit.document.tools) if only is None else tuple(only)
        self._specs: dict[str, ToolSpec] = {}

    async def start(self) -> None:
        """Raises: `ToolError`, `BuildError`."""
        for declared in self._only:
            for spec in await self._toolset.offered(self.unit, [declared]):
                self._specs[spec.name] = spec
                self.written[spec.name] = self._name(declared, spec.name)

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools in the order of the file."""
        return tuple(self._specs.values())

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Raises: what `ToolRunner.call` raises."""
        if name not in self.written:
            hint = suggestion(name, self.written)
            raise ToolNotFound(f"the workflow declares no tool {name!r}", hint=hint)
        return await self._toolset.call(self.unit, self.written[name], arguments)

    def name_of(self, tool: str) -> str | None:
        """How a node names what models call `tool`; None for a tool that is none of these.

        Before `start` a tool of a server is taken to be there when the server is declared. Raises:
        `ToolError`, `BuildError` when a function cannot be imported.
        """
        if self.written:
            return self.written.get(tool)
        for declared in self._only:
            server = source_of(self.unit, declared) is not None
            if server and tool.startswith(f"{declared}_"):
                return self._name(declared, tool)
            if not server and self._toolset.spec(self.unit, declared).name == tool:
                return declared
        return None

    def resource(self, name: str) -> str | None:
        """The class of slots that a call of the tool takes; a tool that is not there takes none."""
        written = self.written.get(name)
        return None if written is None else self._toolset.resource(self.unit, written)

    async def aclose(self) -> None:
        """End the servers that were started."""
        await self._toolset.aclose()

    def _name(self, declared: str, tool: str) -> str:
        source = source_of(self.unit, declared)
        if source is None:
            return declared
        return f"{source[0]}.{tool.removeprefix(f'{source[0]}_')}"
