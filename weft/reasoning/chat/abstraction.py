"""Abstraction-of-Thought (arXiv 2406.12442): an outline in general terms, then its solution.

The prompts are ours. Change `PROMPT_VERSION` with any word: figures name it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from weft.core.errors import ReasoningError
from weft.core.values import Message
from weft.reasoning.answers import answer_text
from weft.reasoning.chat.call import Generation
from weft.reasoning.chat.strategy import ChatStrategy
from weft.reasoning.chat.thread import ChatThread, stop_before
from weft.reasoning.parsing import fence, read_labels, read_points
from weft.reasoning.question import Question, conversation, question_text
from weft.reasoning.thought import Thought

PROMPT_VERSION: Final = "abstraction-1"

_RULES: Final = """\
You solve a question on two levels: first in general, then in this very case.

The general level names kinds of things, not the things of the question: no numbers, names or \
results of this case. For "A train goes 60 km in 45 minutes. How fast is it in km/h?" it is:
1. Bring the time to the unit that is asked for
2. Divide the distance by the time
3. State the speed with its unit"""

_OUTLINE: Final = """\
Question:
{question}

Write the general level only: at most {most} numbered lines."""

_CONCRETE: Final = """\
Now write the other level. Take the lines one after the other: repeat each, and under it do what \
it says with the numbers and names of the question. End with a line that begins with Answer: and \
holds nothing but the answer."""

ANSWER: Final = "Write the answer to the question, and nothing else."


def outline_messages(question: Question, most: int) -> tuple[Message, ...]:
    """Asks for the general level, in at most `most` lines."""
    text = _OUTLINE.format(question=fence(question_text(question)), most=most)
    return conversation(question, _RULES, text)


def concrete_message() -> Message:
    """Asks for the concrete level, after the general one."""
    return Message("user", _CONCRETE)


def direct_messages(question: Question) -> tuple[Message, ...]:
    """Asks for a solution where there is no general level."""
    text = "End with a line that begins with Answer: and holds nothing but the answer."
    return conversation(question, "", f"{question_text(question)}\n\n{text}")


_LOST: Final = "the model was told to write on two levels, not trained on such solutions"
_TOKENS_PER_STEP: Final = 40
_STEP_CHARS: Final = 300
_LEAST_STEPS: Final = 2


class AbstractionStrategy(ChatStrategy):
    """Setting: `steps`, lines of the outline at most."""

    name = "abstraction"
    defaults: ClassVar = {"steps": 6}
    least: ClassVar = {"steps": 1}

    async def think(self, thread: ChatThread, question: Question) -> Thought:
        messages, why = await self._outline(thread, question)
        solved = await thread.ask("concrete", messages, keep=thread.kept)
        answer = (read_labels(solved.text, ("Answer",)).get("Answer") or [""])[-1]
        answer = answer or answer_text(solved.text, whole=False) or ""
        cut = not answer and solved.cut
        if question.schema is not None or not answer or solved.status != "finished":
            final = await self._ask_answer(thread, question, messages, solved)
            if final.ok:
                answer, cut = final.text, final.cut
            if not answer and not solved.ok:
                why = "" if solved.thinking else final.reason
                why, remedy = why or solved.reason, solved.hint or final.hint
                raise ReasoningError(f"there is no answer: {why}", hint=remedy)
        return thread.finish(
            answer or solved.text, why, fidelity="approximate", lost=_LOST, cut=cut
        )

    async def _outline(
        self, thread: ChatThread, question: Question
    ) -> tuple[tuple[Message, ...], str]:
        """The messages that ask for the solution, and a note on the outline."""
        most: int = self.settings["steps"]
        opening = outline_messages(question, most)
        reply = await thread.ask(
            "outline",
            opening,
            purpose="step",
            max_tokens=min(self.options.max_tokens, most * _TOKENS_PER_STEP),
            keep=thread.kept,
            lead="1.",
            amend=stop_before(f"\n{most + 1}."),
        )
        steps = read_points(reply.text, most=most, chars=_STEP_CHARS).points
        if len(steps) < _LEAST_STEPS:
            why = f"no outline: {reply.reason or f'the model wrote {len(steps)} lines of it'}"
            return direct_messages(question), why
        outline = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
        messages = (*opening, Message("assistant", outline), concrete_message())
        return messages, f"solved along {len(steps)} general steps"

    async def _ask_answer(
        self,
        thread: ChatThread,
        question: Question,
        messages: Sequence[Message],
        solved: Generation,
    ) -> Generation:
        """A call for the answer alone, where the solution does not end with one."""
        return await thread.ask(
            "answer",
            [*messages, Message("assistant", solved.text or "..."), Message("user", ANSWER)],
            purpose="conclusion",
            max_tokens=self.options.answer_tokens,
            schema=question.schema,
        )
