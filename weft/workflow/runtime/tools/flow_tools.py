"""The tools of a workflow as models call them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.core.errors import ToolNotFound
from weft.core.suggestion import suggestion
from weft.core.values import ToolSpec
from weft.engine import Retry
from weft.workflow.document.tool_servers import source_of
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.tools.toolset import Toolset


class FlowTools:
    """Implements `ToolRunner` once `start` has imported the functions and started the servers.

    `written` maps a tool's name to its name in the workflow: `files_read_file`, as models call it,
    to `files.read_file`. `toolset` makes the calls, and its owner closes it. `only`: just these
    tools, by their names in the workflow. `approve`: as in `AgentOptions`; `on`: see
    `Toolset.place`.
    """

    def __init__(
        self,
        unit: Unit,
        toolset: Toolset | None = None,
        only: Sequence[str] | None = None,
        *,
        approve: bool | None = None,
        on: str | None = None,
    ) -> None:
        self._approve = approve
        self._on = on
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
        written = self.written[name]
        return await self._toolset.call_for_model(
            self.unit, written, arguments, self._approve, self._on
        )

    def name_of(self, tool: str) -> str | None:
        """The workflow's name for a tool as models call it; None for other tools.

        Before `start`, any tool of a declared server is assumed to exist. Raises: `ToolError`,
        `BuildError` when a function cannot be imported.
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
        """The resource class of the tool's calls; None for an unknown tool."""
        written = self.written.get(name)
        return None if written is None else self._toolset.resource(self.unit, written)

    def retry(self, name: str) -> Retry | None:
        """The retry of the tool's calls; None for an unknown tool."""
        written = self.written.get(name)
        return None if written is None else self._toolset.retry(self.unit, written)

    async def aclose(self) -> None:
        """Stop the servers that were started."""
        await self._toolset.aclose()

    def _name(self, declared: str, tool: str) -> str:
        source = source_of(self.unit, declared)
        if source is None:
            return declared
        return f"{source[0]}.{tool.removeprefix(f'{source[0]}_')}"
