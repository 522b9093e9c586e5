"""Canned tools behind the tool port; a call takes as long for one system as for another.

Knows no system: the latency of a call is drawn from its tool, its arguments and the seed alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from evals.planning.orchestration.task import Canned
from weft.core.errors import ToolNotFound, ToolRaised
from weft.core.values import ToolSpec

SIGMA = 0.5
"""Of the logarithm of latencies: the slowest tenth takes 1.9 times the median or more."""


class CannedTools:
    """Implements `ToolRunner`. `started` lists (name, arguments, when), on the loop's clock.

    All latencies are multiplied by `scale`.
    """

    def __init__(self, tools: Sequence[Canned], seed: int = 0, scale: float = 1.0) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self._seed = seed
        self._scale = scale
        self.started: list[tuple[str, Mapping[str, Any], float]] = []

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values())

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        if name not in self._tools:
            raise ToolNotFound(f"no tool {name!r}", hint=f"there are: {', '.join(self._tools)}")
        self.started.append((name, arguments, asyncio.get_running_loop().time()))
        await asyncio.sleep(self.latency_s(name, arguments))
        try:
            return self._tools[name].result(arguments)
        except Exception as error:
            raise ToolRaised(f"{name} raised {type(error).__name__}: {error}") from error

    def latency_s(self, name: str, arguments: Mapping[str, Any]) -> float:
        """How long that call takes, whoever makes it."""
        text = json.dumps([self._seed, name, arguments], sort_keys=True, default=list)
        draw = Random(hashlib.sha256(text.encode()).digest())
        return self._scale * self._tools[name].median_s * draw.lognormvariate(0.0, SIGMA)
