"""What stands for models, tools and their servers while a recorded run is repeated."""

from __future__ import annotations

from collections.abc import Container, Sequence

from weft.core.ports import ModelClient, ToolRunner
from weft.core.values import ToolSpec
from weft.engine.cassette import Player, ReplayingClient, ReplayingTools
from weft.workflow.border import BorderModels, Stage
from weft.workflow.sources import Source
from weft.workflow.thought_model import ThoughtModel
from weft.workflow.unit import Unit


def replaying_stage(player: Player, asked: Container[str]) -> Stage:
    """Models and tools that answer from the record; nothing else is asked.

    `asked` are the models that were: one of them is not made of others, whatever its declaration.
    """

    def leaf(unit: Unit, name: str) -> ModelClient:
        client, own = ReplayingClient(player, name), unit.clients.get(name)
        return own.over(lambda _: client) if isinstance(own, ThoughtModel) else client

    return Stage(_ReplayingBorder(player), BorderModels(leaf, asked))


class _ReplayingBorder:
    """Implements `Border`: calls of tools are answered from the record."""

    def __init__(self, player: Player) -> None:
        self._player = player

    def tools(self, inner: ToolRunner, source: str = "") -> ToolRunner:
        return ReplayingTools(self._player, inner.specs, source)

    def source(self, unit: Unit, name: str) -> Source:  # noqa: ARG002 - the port
        return _ReplayedSource(self._player, source=name)

    async def listed(self, tools: ToolRunner) -> Sequence[ToolSpec]:
        return tools.specs()


class _ReplayedSource(ReplayingTools):
    """Implements `Source`: a server that is not there, with the tools that it had."""

    async def start(self) -> None:
        """Nothing has to be started."""

    async def aclose(self) -> None:
        """Nothing is open."""
