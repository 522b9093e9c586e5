"""Abstraction-of-Thought: an outline of the general, its solution in particular, an answer.

After Hong et al. (arXiv 2406.12442). Knows no server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.core.errors import BuildError, ReasoningError
from weft.core.ports import ModelClient
from weft.core.values import Message
from weft.engine import Inputs, NodeContext, Work
from weft.reasoning.abstraction.prompts import (
    ANSWER,
    concrete_message,
    direct_messages,
    outline_messages,
)
from weft.reasoning.answering import SPENT
from weft.reasoning.answers import answer_text
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.reading import labelled, read_points
from weft.reasoning.settings import read_settings
from weft.reasoning.thought import Thought
from weft.reasoning.thread.asking import Asking, stopping
from weft.reasoning.thread.said import Said

_LOST: Final = "the model was told to write on two levels, not trained on such solutions"
_TOKENS_PER_STEP: Final = 40
_STEP_CHARS: Final = 300
_LEAST_STEPS: Final = 2


class AbstractionStrategy:
    """`make_strategy("abstraction", ...)`. Setting: `steps`, lines of the outline at most.

    Raises: `BuildError` for settings that are none.
    """

    name = "abstraction"

    def __init__(self, model: ModelClient, options: ThinkOptions) -> None:
        self._steps: int = read_settings(self.name, options.settings, {"steps": 6})["steps"]
        if self._steps < 1:
            raise BuildError("abstraction: steps must be at least 1")
        self._model = model
        self._options = options

    def work(self, question: Question) -> Work:
        """See `Strategy.work`."""

        async def work(context: NodeContext, _: Inputs) -> Thought:
            thread = await Asking.begin(context, self._model, self._options)
            return await self._answer(thread, question)

        return work

    async def _answer(self, thread: Asking, question: Question) -> Thought:
        messages, why = await self._outlined(thread, question)
        solved = await thread.ask("concrete", messages, keep=thread.kept)
        answer = (labelled(solved.text, ("Answer",)).get("Answer") or [""])[-1]
        answer = answer or answer_text(solved.text, whole=False) or ""
        cut = not answer and solved.cut
        if question.schema is not None or not answer or solved.status != "finished":
            last = await self._last(thread, question, messages, solved)
            if last.ok:
                answer, cut = last.text, last.cut
            if not answer and not solved.ok:
                why, spent = last.reason or solved.reason, last.cut or solved.cut
                raise ReasoningError(f"there is no answer: {why}", hint=SPENT if spent else None)
        tree, counts = thread.finish(answer or solved.text, why)
        return Thought(
            answer or solved.text,
            tree=tree,
            counts=counts,
            fidelity="approximate",
            lost=_LOST,
            why=why,
            cut=cut,
        )

    async def _outlined(
        self, thread: Asking, question: Question
    ) -> tuple[tuple[Message, ...], str]:
        """The conversation that asks for the solution, and how it came about."""
        opening = outline_messages(question, self._steps)
        said = await thread.ask(
            "outline",
            opening,
            max_tokens=min(self._options.max_tokens, self._steps * _TOKENS_PER_STEP),
            keep=thread.kept,
            lead="1.",
            amend=stopping(f"\n{self._steps + 1}."),
        )
        steps = read_points(said.text, most=self._steps, chars=_STEP_CHARS).points
        if len(steps) < _LEAST_STEPS:
            why = f"no outline: {said.reason or f'the model wrote {len(steps)} lines of it'}"
            return direct_messages(question), why
        outline = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
        messages = (*opening, Message("assistant", outline), concrete_message())
        return messages, f"solved along {len(steps)} general steps"

    async def _last(
        self, thread: Asking, question: Question, messages: Sequence[Message], solved: Said
    ) -> Said:
        """The answer alone, asked for where the solution does not end with one."""
        return await thread.ask(
            "answer",
            [*messages, Message("assistant", solved.text or "..."), Message("user", ANSWER)],
            max_tokens=self._options.answer_tokens,
            schema=question.schema,
        )


def make(model: ModelClient, options: ThinkOptions) -> AbstractionStrategy:
    """See `weft.reasoning.strategies`."""
    return AbstractionStrategy(model, options)
