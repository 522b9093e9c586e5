"""The prompt of the joiner: are these results enough to answer, or what is missing?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.agents.loops.prompts.turns import results

JOINER_PROMPT_VERSION: Final = "joiner-1"

RULES: Final = """\
You are told a question and the results of calls that were planned to answer it. Decide whether \
the results are enough. If they are, answer. If they are not, say what is missing, so that more \
calls can be planned.

Rules:
- Use only the results; never make one up.
- Results that failed or were left out are shown with their reason. If the others are enough, \
answer without them.
- Ask for more only when other calls can be expected to help, and say exactly what they must find.
- Answer the question itself: no account of how the answer was found."""

_NO_MORE: Final = "Nothing more can be planned. Answer now with what you know."


def told(question: str, lines: Sequence[str], *, last: bool) -> str:
    """The question and the results of all rounds so far; of a later round it begins the same."""
    return f"Question: {question}\n\n{results(lines, _NO_MORE if last else '')}"
