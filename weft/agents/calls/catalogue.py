"""Tool schemas for generated calls: read from a file, split by tool."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.agents.tools.declaration import tool_from_schema
from weft.agents.tools.declaration_file import read_declarations
from weft.core.errors import BuildError, InputError


@dataclass(frozen=True, slots=True)
class CallTool:
    """A tool as a model sees it: `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    field: str = ""

    @property
    def required(self) -> tuple[str, ...]:
        """The names of the parameters that each call must give."""
        return tuple(self.parameters.get("required", ()))

    @property
    def properties(self) -> Mapping[str, Any]:
        """The schemas of the parameters by name."""
        return dict(self.parameters.get("properties", {}))

    def document(self) -> dict[str, Any]:
        """The tool in OpenAI's form, without the wrapper."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }


def read_tools(path: Path, unusable: list[str] | None = None) -> tuple[CallTool, ...]:
    """The tools in a JSON array or in JSON lines; of equal names the first.

    Takes every form of declaration that `tool_from_schema` takes. Where a list `unusable` is given,
    faulty declarations are left out, and it gets the reasons.

    Raises: `InputError` with the place of the first defect, or for a file without tools.
    """
    tools: dict[str, CallTool] = {}
    for number, row in enumerate(read_declarations(path), 1):
        try:
            tool = _tool(row, f"{path}, tool {number}")
        except InputError as error:
            if unusable is None:
                raise
            unusable.append(error.message)
            continue
        tools.setdefault(tool.name, tool)
    if not tools:
        raise InputError(f"{path} declares no tools", hint="give at least one tool")
    return tuple(tools.values())


def split(
    tools: Sequence[CallTool], share: float, seed: int
) -> tuple[tuple[CallTool, ...], tuple[CallTool, ...]]:
    """`share` (0 to 1) of the tools for training, and the others for testing."""
    shuffled = sorted(tools, key=lambda tool: tool.name)
    random.Random(f"split-{seed}").shuffle(shuffled)  # noqa: S311 - not for secrets
    cut = round(len(shuffled) * share)
    return tuple(shuffled[:cut]), tuple(shuffled[cut:])


def without(tools: Iterable[CallTool], names: Iterable[str]) -> tuple[CallTool, ...]:
    """The tools that are not named; `web.search` names `web_search`, too."""
    dropped = {name.replace(".", "_") for name in names}
    return tuple(tool for tool in tools if tool.name not in dropped)


def _tool(row: object, place: str) -> CallTool:
    if not isinstance(row, dict):
        raise InputError(f"{place}: not an object", hint="give one declaration per tool")
    try:
        made = tool_from_schema(_declared_only, row).spec
    except BuildError as error:
        raise InputError(f"{place}: {error.message}", hint=error.hint) from None
    return CallTool(
        made.name, made.description, made.parameters, field=str(row.get("field", "")).split("/")[0]
    )


def _declared_only(**arguments: object) -> None:
    """The tools of a catalogue are declarations: they are never called."""
    raise InputError(f"a tool of a catalogue cannot run: {sorted(arguments)}")
