"""A strategy whose empty answer is a failure. Knows no strategy and no model."""

from __future__ import annotations

from typing import Any

from weft.core.errors import ReasoningError
from weft.core.generated_text import is_blank, without_thought
from weft.engine import Inputs, NodeContext, Work
from weft.engine.followed import followed
from weft.reasoning.question import Question
from weft.reasoning.strategy import Strategy
from weft.reasoning.thought import Thought


class Answering:
    """Implements `Strategy` by `strategy`, whose answers are never empty: then it fails."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    @property
    def name(self) -> str:
        return self._strategy.name

    def work(self, question: Question) -> Work:
        """See `Strategy.work`."""
        work = self._strategy.work(question)

        async def answering(context: NodeContext, inputs: Inputs) -> Any:
            return followed(await work(context, inputs), self._answered)

        return answering

    def _answered(self, thought: Thought) -> Thought:
        if not is_blank(without_thought(thought.answer)):
            return thought
        why = f": {thought.why}" if thought.why else ""
        raise ReasoningError(f"{self.name} came to an empty answer{why}", hint=SPENT)


SPENT = "raise max_tokens: a model that thinks may need all of them before it answers"
"""What to do where tokens were spent before there was an answer."""
