"""The port of choosers: what one gets, and the choice that it makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from weft.agents.catalogue.options import ChooserName
from weft.engine import NodeContext


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The chosen tools, the most promising first.

    tokens  of their declarations in the prompt of a planner
    read    tokens of the catalogue that a model read in order to choose, over all requests
    by      who chose; "lexical" also where a model chose nothing
    """

    tools: tuple[str, ...]
    tokens: int
    read: int = 0
    by: ChooserName = "lexical"


class ToolChooser(Protocol):
    """Chooses tools from a catalogue."""

    async def choose(self, context: NodeContext, /, request: str, limit: int) -> ToolChoice:
        """Tools for `request` whose declarations have at most `limit` tokens.

        Model calls are nodes in the scope of `context`. Raises: `AgentError`, `ModelError`.
        """
