"""The tools of one run: those of every document in it, under the names the documents use.

Knows no graph. Tools given for the run take the place of declared ones of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.agents.tools import Tool, Toolbox
from weft.core.ports import ToolRunner
from weft.core.values import ToolSpec
from weft.workflow.imports import Function, function_of, tool_of
from weft.workflow.unit import Unit


class Toolset:
    """Finds and calls the tools and functions of units; imports each when first needed."""

    def __init__(self, given: ToolRunner | None = None) -> None:
        self._given = given
        self._given_specs = {spec.name: spec for spec in given.specs()} if given else {}
        self._toolbox = Toolbox()
        self._names: dict[tuple[Unit, str], str] = {}
        self._functions: dict[tuple[Unit, str], Function] = {}

    def spec(self, unit: Unit, text: str) -> ToolSpec:
        """What is known of the tool that `text` means in `unit`.

        Raises: `ToolNotFound` or `BuildError` when it cannot be imported.
        """
        given = self._given_specs.get(_short(text))
        return given if given is not None else self._tool(unit, text).spec

    def resource(self, unit: Unit, text: str) -> str | None:
        """The class of slots that a call of the tool takes."""
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
        if self._given is not None and _short(text) in self._given_specs:
            return await self._given.call(_short(text), arguments)
        self._tool(unit, text)
        return await self._toolbox.call(self._names[unit, text], arguments)

    def function(self, unit: Unit, reference: str) -> Function:
        """The plain function. Raises: `ToolNotFound` or `BuildError`."""
        key = unit, reference
        if key not in self._functions:
            self._functions[key] = function_of(unit, reference)
        return self._functions[key]

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
    """The tool's own name, where `text` is an import path."""
    return text.rpartition(":")[2]
