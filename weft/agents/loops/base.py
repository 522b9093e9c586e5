"""What the agents that talk with their model have in common. Knows no loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from weft.agents.agent import AgentOptions, Answer
from weft.agents.loops.fitting import check_schema
from weft.agents.loops.partial import ended
from weft.core.ports import ModelClient, ToolRunner
from weft.engine import Inputs, NodeContext, Partial, Work
from weft.engine.cassette import GuardedTools

_OPTIONS = AgentOptions()


class LoopAgent(ABC):
    """An `Agent` over `tools` and `model`.

    Raises: `BuildError` when the schema of the answer is wrong.
    """

    name: ClassVar[str]

    def __init__(
        self, tools: ToolRunner, model: ModelClient, options: AgentOptions = _OPTIONS
    ) -> None:
        if options.schema is not None:
            check_schema(options.schema)
        self.tools = GuardedTools(tools)
        self.model = model
        self.options = options

    def work(self, question: str) -> Work:
        """See `Agent.work`."""

        async def work(context: NodeContext, _: Inputs) -> Answer | Partial:
            return ended(await self.answer(context, question))

        return work

    @abstractmethod
    async def answer(self, context: NodeContext, question: str) -> Answer:
        """Work on `question`. Raises: `AgentError`, `ModelError`."""
