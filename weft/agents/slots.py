"""The class of slots that a call of a tool takes while it runs. Hands out no slots itself."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from weft.core.ports import ToolRunner


@runtime_checkable
class Slotted(Protocol):
    """A tool runner that knows, for its tools, what they compete for."""

    def resource(self, name: str) -> str | None:
        """The class of slots that a call of the tool takes, or None."""


def resource_of(tools: ToolRunner, name: str) -> str | None:
    """The class of slots of the tool `name`, where `tools` knows one."""
    return tools.resource(name) if isinstance(tools, Slotted) else None
