"""The tools of one run, by the names in its documents. Given tools replace declared ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from weft.agents.reuse import ReusingTools
from weft.agents.tools import Tool, Toolbox
from weft.agents.tools.approval import (
    ApprovalRule,
    approval_of,
    call_approved,
    needs_approval,
)
from weft.agents.tools.toolbox import ToolSettings, breaker_of
from weft.core.breaker import Breaker
from weft.core.errors import BuildError, ToolNotFound
from weft.core.ports import BoundTool, ToolRunner, bound
from weft.core.suggestion import suggestion
from weft.core.values import ToolSpec
from weft.durability.breakers import BreakerGuard, BreakerTools
from weft.engine import Retry
from weft.workflow.compile.policy import retry_of
from weft.workflow.document.tool_servers import (
    ToolServer,
    is_known,
    open_source,
    server_tool_name,
    source_of,
)
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.tools.functions import Function, function_of, rule_of, tool_of
from weft.workflow.runtime.tools.placement import ToolPlacement

if TYPE_CHECKING:
    from weft.reasoning.code.bench import ProgramRunner
    from weft.reasoning.code.sandbox.sandbox import CodeSandbox

_ANYTHING = {"type": "object"}


class ToolBoundary(Protocol):
    """The I/O boundary between a run and its tools: records or replays calls."""

    def tools(self, inner: ToolRunner, source: str = "") -> ToolRunner:
        """The runner to call instead of `inner`, the tools of the server `source` if not empty."""

    def source(self, unit: Unit, name: str) -> ToolServer:
        """The server that `unit` declares as `name`, not yet started."""

    async def listed(self, tools: ToolRunner) -> Sequence[ToolSpec]:
        """The tools of a started server, whose runner `tools` returned."""


LimitCalls = Callable[[str | None, BoundTool], BoundTool]
"""Makes calls of a resource class wait for its limit."""


FindGuard = Callable[[Unit, str, Breaker | None, object], BreakerGuard | None]
"""See `RunBreakers.tool`."""


class ToolLookup(Protocol):
    """Tools and functions as they are known before a run."""

    def spec(self, unit: Unit, text: str) -> ToolSpec:
        """See `Toolset.spec`."""

    def function(self, unit: Unit, reference: str) -> Function:
        """See `Toolset.function`."""

    def check_pool(self, on: str, what: str) -> None:
        """See `Toolset.check_pool`."""

    def place(self, unit: Unit, text: str, on: str) -> None:
        """See `Toolset.place`."""


class _DirectBoundary:
    """A boundary that passes all calls through."""

    def tools(self, inner: ToolRunner, source: str = "") -> ToolRunner:  # noqa: ARG002 - the port
        return inner

    def source(self, unit: Unit, name: str) -> ToolServer:
        return open_source(unit, name)

    async def listed(self, tools: ToolRunner) -> Sequence[ToolSpec]:
        return tools.specs()


class Toolset:
    """Finds and calls the tools and functions of units; imports each when first needed.

    Servers are started on first use too, and stopped by `aclose`; the types of their tools are
    unknown before. Identical calls of pure tools are made once; similar calls of tools with a batch
    form are made together.
    """

    def __init__(
        self,
        given: ToolRunner | None = None,
        boundary: ToolBoundary | None = None,
        placement: ToolPlacement | None = None,
        find_guard: FindGuard | None = None,
    ) -> None:
        self._find_guard = find_guard
        self._guards: dict[str, BreakerGuard | None] = {}
        self._given_guards: dict[str, BreakerGuard | None] = {}
        self._started: set[tuple[Unit, str]] = set()
        self._given: ToolRunner | None = None
        if given is not None:
            self._given = BreakerTools(given, self._given_guards.get)
        self._given_specs = {spec.name: spec for spec in given.specs()} if given else {}
        self._toolbox = Toolbox()
        self._placement = placement or ToolPlacement(is_forced=True)
        self._calls: dict[str | None, ToolRunner] = {}
        self._names: dict[tuple[Unit, str], str] = {}
        self._bound: dict[tuple[Unit, str, str | None], BoundTool] = {}
        self._functions: dict[tuple[Unit, str], Function] = {}
        self._sources: dict[tuple[Unit, str], ToolServer] = {}
        self._reused: dict[tuple[Unit, str], ToolRunner] = {}
        self._server_specs: dict[tuple[Unit, str], dict[str, ToolSpec]] = {}
        self._limit: LimitCalls | None = None
        self._boundary: ToolBoundary = _DirectBoundary()
        self._given_own = given
        self.settle: Callable[[], Awaitable[None]] | None = None
        if boundary is not None:
            self.put(boundary)

    def put(self, boundary: ToolBoundary) -> None:
        """Route all further calls through `boundary`. Before any server is started."""
        self._boundary = boundary
        self._bound.clear()
        self._calls = {on: boundary.tools(calls) for on, calls in self._calls.items()}
        if self._given is not None:
            self._given = boundary.tools(self._given)
        for (unit, name), tools in self._reused.items():
            self._reused[unit, name] = boundary.tools(tools, name)

    def at_boundary(self, runner: ToolRunner) -> ToolRunner:
        """`runner` behind the boundary of the run."""
        return self._boundary.tools(runner)

    def limit(self, limit: LimitCalls) -> None:
        """Pass each call through `limit`, with the resource class of its tool."""
        self._limit = limit
        self._bound.clear()

    def spec(self, unit: Unit, text: str) -> ToolSpec:
        """The spec of the tool that `text` names in `unit`, as far as it is known.

        Raises: `ToolNotFound` or `BuildError` when it cannot be imported.
        """
        given = self._given_specs.get(_short(text))
        if given is not None:
            return given
        source = source_of(unit, text)
        if source is None:
            return self._tool(unit, text).spec
        name = server_tool_name(*source)
        listed = self._listed(unit, source[0])
        if listed is None:
            return ToolSpec(name, "", _ANYTHING)
        if name not in listed:
            hint = suggestion(name, listed)
            raise ToolNotFound(f"`{source[0]}` has no tool `{source[1]}`", hint=hint)
        return listed[name]

    def known(self, unit: Unit, name: str) -> Sequence[ToolSpec]:
        """The tools of the server `name`, as far as known without starting it."""
        return tuple((self._listed(unit, name) or {}).values())

    async def offered(self, unit: Unit, texts: Sequence[str]) -> tuple[ToolSpec, ...]:
        """The specs of several tools; the name of a server stands for all of its tools.

        Starts the servers. Raises: `ToolError`, `BuildError`.
        """
        specs: dict[str, ToolSpec] = {}
        for text in texts:
            for spec in await self._offer(unit, text):
                specs[spec.name] = spec
        return tuple(specs.values())

    async def start(self, unit: Unit, name: str) -> ToolServer:
        """The server that `unit` declares as `name`, running. Raises: `ToolError`, `BuildError`."""
        source = self._opened(unit, name)
        guard = self._guard(unit, name)
        if guard is None or (unit, name) in self._started:
            await source.start()
        else:
            with guard.call() as call:
                await source.start()
                call.end("nothing")  # the call that follows says whether it works
            self._started.add((unit, name))
        specs = await self._boundary.listed(self._reused[unit, name])
        self._server_specs[unit, name] = {spec.name: spec for spec in specs}
        return source

    def check_pool(self, on: str, what: str) -> None:
        """Check that there is the pool `on`, on which `what` is to run. Raises: `BuildError`."""
        self._placement.check_pool(on, what)

    def place(self, unit: Unit, text: str, on: str) -> None:
        """Place calls of the tool in nodes for which the nodes around them name the pool `on`.

        Where its declaration names one, that stays. Raises: as `bound`.
        """
        if source_of(unit, text) is None and _short(text) not in self._given_specs:
            self._place(unit, text, on)

    def programs(self, on: str | None) -> Callable[[CodeSandbox], ProgramRunner] | None:
        """See `ToolPlacement.programs`."""
        return self._placement.programs(on)

    async def check_placement(self) -> None:
        """Raises: `PlacementError` where the cluster has no node for a tool's pool."""
        await self._placement.check()

    async def aclose(self) -> None:
        """Stop all servers that were started, and leave the cluster."""
        await self._placement.aclose()
        closing = [asyncio.create_task(source.aclose()) for source in self._sources.values()]
        if not closing:
            return
        try:
            await asyncio.wait(closing)
        except asyncio.CancelledError:
            for task in closing:  # makes them end at once
                task.cancel()
            await asyncio.wait(closing)
            raise

    def replaces(self, name: str) -> bool:
        """True when tools given for the run replace those of the server `name`."""
        return any(given.startswith(f"{name}_") for given in self._given_specs)

    def gives(self, text: str) -> bool:
        """True when a tool given for the run is, or replaces, the one that `text` names."""
        return _short(text) in self._given_specs or self.replaces(_short(text))

    def resource(self, unit: Unit, text: str) -> str | None:
        """The resource class of the tool's calls."""
        source = source_of(unit, text)
        if source is not None:
            return source[0]
        declared = text if text in unit.document.tools else None
        if text in unit.document.run.limits or _short(text) in self._given_specs:
            return declared
        return self._tool(unit, text).resource or declared

    def retry(self, unit: Unit, text: str) -> Retry | None:
        """The retry that the tool's declaration has, or else the tool itself."""
        source = source_of(unit, text)
        declared = unit.document.tools.get(text if source is None else source[0])
        found = None if declared is None else retry_of(declared)
        if found is not None or source is not None or _short(text) in self._given_specs:
            return found
        return self._tool(unit, text).retry

    def settings(self, unit: Unit, text: str) -> ToolSettings:
        """The resource class and the retry of the tool's calls."""
        return ToolSettings(self.resource(unit, text), self.retry(unit, text))

    @property
    def resources(self) -> frozenset[str]:
        """The resource classes that the tools used so far declare themselves."""
        tools = (self._toolbox.get(name) for name in self._names.values())
        return frozenset(tool.resource for tool in tools if tool.resource is not None)

    async def call(
        self, unit: Unit, text: str, arguments: Mapping[str, Any], on: str | None = None
    ) -> Any:
        """Call the tool, where `place` says. Raises: what `ToolRunner.call` raises."""
        return await self.bound(unit, text, on)(arguments)

    def bound(self, unit: Unit, text: str, on: str | None = None) -> BoundTool:
        """A bound call of the tool where `place` says, looked up once.

        Raises: `ToolNotFound` or `BuildError` when it cannot be imported or placed.
        """
        call = self._bound.get((unit, text, on))
        if call is None:
            rule = self.approval(unit, text)
            call = self._limited(unit, text, on)
            if rule not in (None, False):
                call = partial(self._approved, unit, text, call, rule)
            self._bound[unit, text, on] = call
        return call

    def approval(self, unit: Unit, text: str) -> ApprovalRule | None:
        """The rule for the approval of the tool's calls: the declared one, else the tool's own."""
        source = source_of(unit, text)
        declared = unit.document.tools.get(text if source is None else source[0])
        if declared is not None:
            rule = rule_of(declared.approval("" if source is None else source[1]))
            if rule is not None:
                return rule
        given = self._given_specs.get(_short(text))
        if given is not None and self._given_own is not None:
            return approval_of(self._given_own, given)
        return None if source is not None else self._tool(unit, text).approve

    async def call_with(
        self,
        unit: Unit,
        text: str,
        arguments: Mapping[str, Any],
        rule: ApprovalRule,
        on: str | None = None,
    ) -> Any:
        """Call the tool by another rule than its own. Raises: what `ToolRunner.call` raises."""
        return await self._approved(unit, text, self._limited(unit, text, on), rule, arguments)

    async def call_for_model(
        self,
        unit: Unit,
        text: str,
        arguments: Mapping[str, Any],
        approve: bool | None,
        on: str | None = None,
    ) -> Any:
        """Call the tool as a model requests it: `approve` as in `AgentOptions`."""
        asks = approve is None and self.approval(unit, text) is None
        if approve is True or (asks and self.spec(unit, text).effect == "once"):
            return await self.call_with(unit, text, arguments, True, on)
        return await self.call(unit, text, arguments, on)

    async def _approved(
        self,
        unit: Unit,
        text: str,
        make: BoundTool,
        rule: ApprovalRule,
        arguments: Mapping[str, Any],
    ) -> Any:
        if not needs_approval(rule, arguments):
            return await make(arguments)
        source = source_of(unit, text)
        if source is not None and _short(text) not in self._given_specs:
            await self.start(unit, source[0])  # its schema is known then
        return await call_approved(self.spec(unit, text), make, arguments, self.settle)

    def _limited(self, unit: Unit, text: str, on: str | None) -> BoundTool:
        """The call within the rate limits of the run; a person's thinking is outside of them."""
        call = self._lookup(unit, text, on)
        return call if self._limit is None else self._limit(self.resource(unit, text), call)

    def _lookup(self, unit: Unit, text: str, on: str | None) -> BoundTool:
        if self._given is not None and _short(text) in self._given_specs:
            name, own = _short(text), self._given_own
            assert own is not None
            self._given_guards[name] = self._guard(unit, text, breaker_of(own, name), own)
            return partial(self._given.call, name)
        source = source_of(unit, text)
        if source is not None:
            return partial(self._call_source, unit, *source)
        return bound(self._place(unit, text, on), self._names[unit, text])

    def _place(self, unit: Unit, text: str, on: str | None) -> ToolRunner:
        """The runner that calls the tool where it is placed."""
        tool = self._tool(unit, text)
        declared = unit.document.tools.get(text)
        if not self._placement.on_cluster or (declared is not None and declared.on is not None):
            on = None
        calls = self._runner(on)
        if on is not None:
            self._placement.place(tool, on, around=on)
        return calls

    def _runner(self, on: str | None) -> ToolRunner:
        if on not in self._calls:
            made = BreakerTools(self._placement.over(self._toolbox, on), self._guards.get)
            self._calls[on] = self._boundary.tools(ReusingTools(made))
        return self._calls[on]

    def _guard(
        self, unit: Unit, text: str, own: Breaker | None = None, owner: object = None
    ) -> BreakerGuard | None:
        """The guard of the calls of a tool, or of a server; None: it has no breaker."""
        return None if self._find_guard is None else self._find_guard(unit, text, own, owner)

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
            source = self._sources[unit, name] = self._boundary.source(unit, name)
            guard = self._guard(unit, name)
            made = source if guard is None else BreakerTools(source, lambda _: guard)
            self._reused[unit, name] = self._boundary.tools(ReusingTools(made), name)
        return self._sources[unit, name]

    def _listed(self, unit: Unit, name: str) -> Mapping[str, ToolSpec] | None:
        """The tools of a server, or None while they are unknown."""
        if is_known(unit, name) and (unit, name) not in self._server_specs:
            specs = self._opened(unit, name).specs()
            self._server_specs[unit, name] = {spec.name: spec for spec in specs}
        return self._server_specs.get((unit, name))

    def _tool(self, unit: Unit, text: str) -> Tool[..., Any]:
        key = unit, text
        if key not in self._names:
            name = self._free(_short(text))
            tool = tool_of(unit, text).named(name)
            declared = unit.document.tools.get(text)
            on = None if declared is None else declared.on
            self._runner(None)
            try:
                self._placement.place(tool, on)
            except BuildError as error:
                error.path = () if on is None else ("on",)
                raise
            self._toolbox.add(tool)
            self._names[key] = name
            self._guards[name] = self._guard(unit, text, tool.breaker)
        return self._toolbox.get(self._names[key])

    def _free(self, name: str) -> str:
        taken = self._toolbox.names
        numbered = (f"{name}_{number}" for number in range(2, len(taken) + 3))
        return name if name not in taken else next(n for n in numbered if n not in taken)


def _short(text: str) -> str:
    """The tool's own name, from an import path or a server's tool."""
    return text.rpartition(":")[2].replace(".", "_")
