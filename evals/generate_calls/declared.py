"""Tools that run: declarations composed from word lists, with functions of stated behaviour."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from weft.agents.calls import CallItem, CallTool, GenerateOptions, compose_tools, generate
from weft.agents.tools import Toolbox
from weft.agents.tools.declaration import tool_from_schema

TOOLS: Final = compose_tools(300, seed=5)
_NINE: Final = ("simple", "multiple", "parallel", "parallel_multiple", "irrelevance", "missing")


def items(count: int, styles: Sequence[str] = _NINE, seed: int = 0) -> list[CallItem]:
    """Accepted items of the styles in equal shares."""
    options = GenerateOptions(count, dict.fromkeys(styles, 1.0), seed, per_skeleton=50)
    return [item for item, refusal in generate(TOOLS, options) if refusal is None]


def toolbox(
    tools: Sequence[CallTool] = TOOLS,
    *,
    seconds: float = 0.0,
    raising: frozenset[str] = frozenset(),
    empty: frozenset[str] = frozenset(),
) -> Toolbox:
    """All tools as functions that wait `seconds` and return their arguments.

    Those of `raising` raise, those of `empty` return an empty list.
    """
    return Toolbox(
        *(
            tool_from_schema(_function(tool.name, seconds, raising, empty), tool.document())
            for tool in tools
        )
    )


def _function(
    name: str, seconds: float, raising: frozenset[str], empty: frozenset[str]
) -> Callable[..., Any]:
    async def call(**arguments: object) -> Mapping[str, object] | list[object]:
        if seconds:
            await asyncio.sleep(seconds)
        if name in raising:
            raise LookupError(name)
        return [] if name in empty else {"tool": name, **arguments}

    return call
