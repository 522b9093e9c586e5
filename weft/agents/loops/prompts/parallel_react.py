"""The prompt of `parallel-react`: the served model's own way of calling tools, several at once."""

from __future__ import annotations

from typing import Final

from weft.agents.loops.prompts.system import answer_words
from weft.core.values import JsonSchema, Message

PARALLEL_REACT_PROMPT_VERSION: Final = "parallel-react-1"

_RULES: Final = """\
You answer a question with the help of tools.

Rules:
- Make all calls that do not need one another's results at once.
- Use only results that you were told; never make one up.
- A call that failed fails again: change it, try another tool, or do without.
- When the results are enough, answer the question itself: no account of how the answer was \
found."""


def opening(question: str, schema: JsonSchema | None, instructions: str) -> tuple[Message, ...]:
    """The messages that begin the conversation; tools are not among them, they travel apart."""
    answer = "" if schema is None else f"The answer is {answer_words(schema)}"
    parts = [_RULES, answer, instructions]
    return (
        Message("system", "\n\n".join(part for part in parts if part)),
        Message("user", question),
    )


def unusable(problem: str, schema: JsonSchema | None, *, final: bool) -> str:
    """That a reply cannot be used, and what is wanted instead."""
    told = f"Your reply cannot be used: {problem}."
    if schema is not None:
        return f"{told} Give the answer and nothing else: {answer_words(schema)}"
    return f"{told} Answer in a text." if final else f"{told} Call tools, or answer in a text."
