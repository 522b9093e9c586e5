"""What models are told by Skeleton-of-Thought. Knows no model.

The steps follow Ning et al. (arXiv 2307.15337); the words are ours. Change a word, and the version
changes with it: figures name the version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.core.values import Message
from weft.reasoning.asked import asked, conversation
from weft.reasoning.question import Question
from weft.reasoning.reading import fenced

PROMPT_VERSION: Final = "skeleton-1"

_ROUTE: Final = """\
You decide how a question is best answered. Reply with one letter.
A: by several points that can be written independently of one another, such as tips, reasons, \
aspects or a comparison
B: in one go, because each step needs the one before (a calculation, a proof, code, a story), or \
because a word or a sentence is enough"""

_SKELETON: Final = """\
You plan an answer. You do not write it: you write only its skeleton, {least} to {most} numbered \
points of 3 to 5 words each that together cover the question and do not overlap.

For the question "How do I keep bread fresh?" a skeleton is:
1. Store it in paper
2. Keep it off the fridge
3. Freeze what is left"""

_POINT: Final = """\
You write one point of an answer that several writers share. The skeleton says what each writer \
covers. Write only the point you are given, in one or two short sentences, and nothing that \
belongs to another point: no introduction, no conclusion."""


def route_messages(question: Question) -> tuple[Message, ...]:
    """Asks whether points suit the question: the answer is the letter A or B."""
    return conversation(question, _ROUTE, f"Question:\n{fenced(asked(question))}\n\nA or B?")


def skeleton_messages(question: Question, most: int) -> tuple[Message, ...]:
    """Asks for a skeleton of at most `most` points."""
    rules = _SKELETON.format(least=min(3, most), most=most)
    text = f"Question:\n{fenced(asked(question))}\n\nWrite the skeleton of the answer."
    return conversation(question, rules, text)


def point_messages(question: Question, points: Sequence[str], number: int) -> tuple[Message, ...]:
    """Asks for point `number`, from 1. All of the prompt but its last line is the same for each."""
    listed = "\n".join(f"{place}. {point}" for place, point in enumerate(points, 1))
    text = (
        f"Question:\n{fenced(asked(question))}\n\nSkeleton:\n{fenced(listed)}\n\n"
        f"Write point {number}: {points[number - 1]}"
    )
    return conversation(question, _POINT, text)


def direct_messages(question: Question) -> tuple[Message, ...]:
    """The question as it is."""
    return conversation(question, "", asked(question))
