"""The tool port: named functions with schemas, wherever they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from weft.core.values import ToolSpec


class ToolRunner(Protocol):
    """Calls tools by name. Safe to use from many tasks of one event loop at once."""

    def specs(self) -> tuple[ToolSpec, ...]:
        """All tools, in the order they were registered."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Check `arguments`, run the tool, check and return its result.

        Cancelling the awaiting task cancels the tool as far as the tool allows.

        Raises: `ToolNotFound`, `ToolArgumentError`, `ToolResultError`, `ToolRaised`,
        `ToolLimitError`.
        """
