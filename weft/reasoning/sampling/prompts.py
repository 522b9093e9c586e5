"""Prompts of samples.

Change the version with any word: figures name the version.
"""

from __future__ import annotations

from typing import Final

from weft.core.values import Message
from weft.reasoning.question import Question, conversation, question_text

PROMPT_VERSION: Final = "sample-1"

RECHECK: Final = (
    "Wait. Let me check this step by step. If a step is wrong, I go back to the last one that is "
    "right and try another way from there."
)
"""What makes a model that has answered continue its search, in its own voice."""

RECHECK_TURN: Final = (
    "Check your answer step by step. If a step is wrong, go back to the last one that is right and "
    "try another way from there."
)
"""`RECHECK` as a user's turn."""

ENDING: Final = 'End with a line that begins with "Answer: " and holds the answer alone.'
"""The instruction to mark the answer, so that it can be read and compared."""

INSTRUCTION: Final = f"Think step by step. {ENDING}"
"""The instruction of each sample."""


def question_messages(question: Question, instruction: str = INSTRUCTION) -> tuple[Message, ...]:
    """The question after its documents, then the instruction, unless it has a schema."""
    text = question_text(question)
    if instruction and question.schema is None:
        text += f"\n\n{instruction}"
    return conversation(question, "", text)
