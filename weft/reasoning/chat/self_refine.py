"""Self-Refine (arXiv 2303.17651): the model answers, criticises its answer and revises it.

As in the paper, one model plays all three parts, and each call reads every answer and critique
before it. The words of the prompts are ours. Change a word, and `PROMPT_VERSION` changes.
"""

from __future__ import annotations

import re
from typing import Final

from weft.core.errors import ReasoningError
from weft.core.values import Message
from weft.reasoning.chat.call import Generation
from weft.reasoning.chat.strategy import ChatStrategy
from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.parsing import read_labels
from weft.reasoning.question import Question, conversation, question_text
from weft.reasoning.thought import Thought

PROMPT_VERSION: Final = "self-refine-1"

CRITIQUE: Final = """\
Criticise your last answer; do not write a new one. Check it against the question: what is wrong, \
missing, unclear or not asked for? For each problem say where it is and how to mend it. End with a \
line that begins with Verdict: and holds one word: revise, or keep where there is nothing to \
mend."""

REVISE: Final = """\
Now write the answer again, with all of these problems mended. Write only the answer, complete, \
without a word about the critique."""


_KEEP: Final = re.compile(r"\W*keep\b", re.IGNORECASE)


def answer_messages(question: Question) -> tuple[Message, ...]:
    """The question as it is."""
    return conversation(question, "", question_text(question))


def finds_nothing(critique: str) -> bool:
    """Whether the last verdict of `critique` is to keep the answer; without one it is not."""
    verdicts = read_labels(critique, ("Verdict",)).get("Verdict") or [""]
    return _KEEP.match(verdicts[-1]) is not None


class SelfRefineStrategy(ChatStrategy):
    """No settings: `rounds` of the options bounds how often an answer is criticised and revised.

    A revision that fails, or is cut off where the answer before it was whole, is dropped.
    """

    name = "self-refine"

    async def think(self, thread: ChatThread, question: Question) -> Thought:
        messages = answer_messages(question)
        answer = await thread.ask("answer", messages, schema=question.schema)
        if not answer.ok:
            raise ReasoningError(f"there is no answer: {answer.reason}", hint=answer.hint)
        why = f"all {self.options.rounds} rounds are used up"
        for number in range(1, self.options.rounds + 1):
            messages = (*messages, Message("assistant", answer.text), Message("user", CRITIQUE))
            critique = await thread.ask(
                f"critique {number}", messages, purpose="step", keep=thread.kept
            )
            if not critique.ok:
                why = f"there is no critique {number}: {critique.reason}"
                break
            if finds_nothing(critique.text):
                why = f"critique {number} finds nothing to mend"
                break
            messages = (*messages, Message("assistant", critique.text), Message("user", REVISE))
            revised = await thread.ask(f"revision {number}", messages, schema=question.schema)
            dropped = _why_dropped(answer, revised)
            if dropped:
                why = f"revision {number} is dropped: {dropped}"
                break
            answer = revised
        return thread.finish(answer.text, why, cut=answer.cut)


def _why_dropped(answer: Generation, revised: Generation) -> str:
    """Why `answer` stays in place of what it was `revised` to, in words; empty: it does not."""
    if not revised.ok:
        return revised.reason
    return "it is cut off" if revised.cut and not answer.cut else ""
