"""Prompts of selection.

Change the version with any word: figures name the version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.core.values import Message
from weft.reasoning.parsing import fence
from weft.reasoning.question import Question, conversation, question_text

PROMPT_VERSION: Final = "select-2"

EXCERPT_CHARS: Final = 6000
"""The most characters of a solution in a prompt."""

_GRADE: Final = """\
You grade solutions. You are shown a question and one solution. Check each step, then reply with \
one whole number from 0 (wrong) to 10 (certainly right), and nothing else."""

_JUDGE: Final = """\
You compare two solutions of a question. Check where they differ, then reply with one letter and \
nothing else: A if solution A is better, B if solution B is, C if there is no difference."""

_SYNTHESIS: Final = """\
You are shown a question and several attempts at it, some of which may be wrong. Compare their \
steps, decide what is right, and write the final answer."""

_GROUP: Final = """\
You are shown a question and numbered answers to it. Say which of them mean the same. Reply with a \
JSON list that has one number for each answer, in order: the number of the first answer that means \
the same, which is its own where no earlier one does. Answers that contradict one another never \
mean the same."""

_ENDING: Final = ' End with a line that begins with "Answer: " and holds the answer alone.'


def grade_messages(question: Question, solution: str) -> tuple[Message, ...]:
    """Asks for a grade of one solution."""
    return _messages(question, _GRADE, [("Solution", solution)], "Grade, 0 to 10:")


def judge_messages(question: Question, one: str, other: str) -> tuple[Message, ...]:
    """Asks which of two solutions is better."""
    shown = [("Solution A", one), ("Solution B", other)]
    return _messages(question, _JUDGE, shown, "A, B or C?")


def group_messages(question: Question, answers: Sequence[str]) -> tuple[Message, ...]:
    """Asks which of different answers mean the same."""
    shown = [(f"Answer {place}", answer) for place, answer in enumerate(answers, 1)]
    return _messages(question, _GROUP, shown, f"A JSON list of {len(answers)} numbers:")


def synthesis_messages(question: Question, attempts: Sequence[str]) -> tuple[Message, ...]:
    """Asks for a final answer after reading all attempts."""
    shown = [(f"Attempt {place}", attempt) for place, attempt in enumerate(attempts, 1)]
    rules = _SYNTHESIS + ("" if question.schema is not None else _ENDING)
    return _messages(question, rules, shown, "Write the final answer.")


def excerpt(text: str, chars: int = EXCERPT_CHARS) -> str:
    """`text`, or its beginning and end with a mark between them."""
    if len(text) <= chars:
        return text
    head = chars // 3
    return f"{text[:head]}\n[...]\n{text[-(chars - head) :]}"


def _messages(
    question: Question, rules: str, shown: Sequence[tuple[str, str]], request: str
) -> tuple[Message, ...]:
    blocks = [("Question", question_text(question)), *shown]
    texts = "\n\n".join(f"{title}:\n{fence(text)}" for title, text in blocks)
    return conversation(question, rules, f"{texts}\n\n{request}")
