"""The tool port: named functions with schemas, wherever they run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, runtime_checkable

from weft.core.errors import WeftError
from weft.core.values import ToolSpec

BoundTool = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Calls one tool, as `ToolRunner.call` does."""


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


@runtime_checkable
class BatchRunner(Protocol):
    """A tool runner that can make several calls of one tool at once, where its spec allows it."""

    async def call_batch(
        self, name: str, calls: Sequence[Mapping[str, Any]]
    ) -> Sequence[Any | WeftError]:
        """One outcome for each of `calls` (at most the spec's `batch`), in their order.

        A call that failed alone is its error, as a value. Cancelling the caller cancels them all.

        Raises: what `ToolRunner.call` raises, when all of them failed together.
        """


class ToolBinder(Protocol):
    """A tool runner that looks a tool up once for many calls."""

    def bound(self, name: str) -> BoundTool:
        """`call` for the tool `name`. Raises: `ToolNotFound`."""


def bound(tools: ToolRunner, name: str) -> BoundTool:
    """`call` for the tool `name`, looked up once where `tools` can. Raises: `ToolNotFound`."""
    look_up: Callable[[str], BoundTool] | None = getattr(tools, "bound", None)
    return partial(tools.call, name) if look_up is None else look_up(name)
