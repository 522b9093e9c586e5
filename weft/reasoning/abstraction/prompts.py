"""What models are told by Abstraction-of-Thought. Knows no model.

The two levels follow Hong et al. (arXiv 2406.12442); the words are ours. Change a word, and the
version changes with it: figures name the version.
"""

from __future__ import annotations

from typing import Final

from weft.core.values import Message
from weft.reasoning.asked import asked, conversation
from weft.reasoning.question import Question
from weft.reasoning.reading import fenced

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
    text = _OUTLINE.format(question=fenced(asked(question)), most=most)
    return conversation(question, _RULES, text)


def concrete_message() -> Message:
    """Asks, after the general level, for the other."""
    return Message("user", _CONCRETE)


def direct_messages(question: Question) -> tuple[Message, ...]:
    """Asks for a solution without the general level, which nobody wrote."""
    text = "End with a line that begins with Answer: and holds nothing but the answer."
    return conversation(question, "", f"{asked(question)}\n\n{text}")
