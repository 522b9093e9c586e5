"""The base class of strategies on chat threads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any, ClassVar, TypeAlias

from weft.core.ports import ModelClient
from weft.engine import Inputs, NodeContext, NodeFn
from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.options import ThinkOptions, read_settings
from weft.reasoning.question import Question
from weft.reasoning.thought import Thought

Think: TypeAlias = Callable[[ChatThread], Awaitable[Thought]]


class ChatStrategy:
    """Implements `Strategy`: `think` answers a question, starting from the root thread.

    `defaults`, `least` and `choices`: see `read_settings`. `role` is that of the root thread.

    Raises: `BuildError` for wrong settings.
    """

    name: str
    role: str = "thought"
    defaults: ClassVar[Mapping[str, Any]] = {}
    least: ClassVar[Mapping[str, int]] = {}
    choices: ClassVar[Mapping[str, Collection[str]]] = {}

    def __init__(self, model: ModelClient, options: ThinkOptions) -> None:
        self.model = model
        self.options = options
        self.settings = read_settings(
            self.name, options.settings, self.defaults, least=self.least, choices=self.choices
        )

    def work(self, question: Question) -> NodeFn:
        async def work(context: NodeContext, _: Inputs) -> Thought:
            think = await self.prepare(question)
            thread = await ChatThread.begin(context, self.model, self.options, self.role)
            return await think(thread)

        return work

    async def prepare(self, question: Question) -> Think:
        """The function that thinks about `question`; raises its errors before the model starts."""
        return partial(self.think, question=question)

    async def think(self, thread: ChatThread, question: Question) -> Thought:
        """The thought about `question`. Raises: `ReasoningError` when there is no answer."""
        raise NotImplementedError
