"""The tools that a workflow declares, for others to call: its functions and its servers.

Knows no nodes of the workflow: only what stands under `tools`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.agents.tools.suggestion import suggestion
from weft.core.errors import ToolNotFound
from weft.core.values import ToolSpec
from weft.workflow.sources import source_of
from weft.workflow.toolset import Toolset
from weft.workflow.unit import Unit


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
