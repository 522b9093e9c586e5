"""The registry of tools of a program: the `ToolRunner` over Python functions.

Knows names; each call is run by `weft.agents.tools.invocation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from weft.agents.tools.batch_invocation import invoke_batch
from weft.agents.tools.function import Tool
from weft.agents.tools.invocation import invocation
from weft.agents.tools.reference import resolve
from weft.agents.tools.suggestion import suggestion
from weft.core.errors import BuildError, DuplicateName, ToolNotFound, WeftError
from weft.core.ports import ToolCall
from weft.core.values import ToolSpec

MAX_RESULT_BYTES: Final = 16 * 1024 * 1024


class Toolbox:
    """Implements `ToolRunner` over tools, and over import paths that are imported on first use.

    And `ToolBinder`, and `BatchRunner` for those with a batch form. A result is plain data of at
    most `max_result_bytes`, measured as JSON.
    """

    def __init__(self, *tools: Tool[..., Any], max_result_bytes: int = MAX_RESULT_BYTES) -> None:
        self._tools: dict[str, Tool[..., Any] | Callable[[], Tool[..., Any]]] = {}
        self._bound: dict[str, ToolCall] = {}
        self._max_result_bytes = max_result_bytes
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool[..., Any], name: str | None = None) -> None:
        """Register `tool`, under `name` or its own.

        Raises: `DuplicateName`; `BuildError` when it is not a tool, or the name is no identifier.
        """
        if not isinstance(tool, Tool):
            raise BuildError(
                f"{tool!r} is not a tool", hint="decorate the function with @weft.tool"
            )
        named = tool if name is None else tool.named(name)
        self._enter(named.spec.name, named)

    def declare(self, name: str, path: str, base: Path | None = None) -> None:
        """Register the tool at an import path (see `resolve`) as `name`; imports nothing yet.

        Raises: `DuplicateName`.
        """
        self._enter(name, partial(resolve, path, base))

    def _enter(self, name: str, tool: Tool[..., Any] | Callable[[], Tool[..., Any]]) -> None:
        if name in self._tools:
            raise DuplicateName(f"there are two tools {name!r}", hint="give one another name")
        self._tools[name] = tool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools, in the order they were registered."""
        return tuple(self._tools)

    def get(self, name: str) -> Tool[..., Any]:
        """The tool called `name`; imports it where it was only declared.

        Raises: `ToolNotFound`, with the closest name there is; what `resolve` raises.
        """
        found = self._tools.get(name)
        if found is None:
            raise ToolNotFound(f"there is no tool {name!r}", hint=suggestion(name, self._tools))
        if isinstance(found, Tool):
            return found
        self._tools[name] = tool = found().named(name)
        return tool

    def resource(self, name: str) -> str | None:
        """The class of slots that a call of the tool takes, or None; imports it where needed."""
        return self.get(name).resource if name in self._tools else None

    def specs(self) -> tuple[ToolSpec, ...]:
        """All tools, in the order they were registered; imports those that were only declared.

        Raises: what `resolve` raises.
        """
        return tuple(self.get(name).spec for name in self._tools)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return await self.bound(name)(arguments)

    def bound(self, name: str) -> ToolCall:
        found = self._bound.get(name)
        if found is None:
            found = self._bound[name] = invocation(self.get(name), self._max_result_bytes)
        return found

    async def call_batch(
        self, name: str, calls: Sequence[Mapping[str, Any]]
    ) -> Sequence[Any | WeftError]:
        return await invoke_batch(self.get(name), calls, self._max_result_bytes)
