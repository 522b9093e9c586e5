"""One conversation that reads several attempts at a question and answers it. Asks no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.reasoning.asked import asked, conversation
from weft.reasoning.grammar import Opening
from weft.reasoning.protocols.tags import THINK
from weft.reasoning.reading import fenced
from weft.reasoning.thread.thread import Thread

_RULES: Final = """\
You are given a question and several independent attempts at it. They were made without knowledge of
each other; any of them may be wrong, and several that agree may still be wrong. Compare them, find
where they differ and check that step yourself, then answer the question. Give one final answer, not
a review of the attempts."""
_WORDS_TOKENS: Final = 200
_SPARE: Final = 0.9


def synthesis(parent: Thread, attempts: Sequence[Thread]) -> Opening:
    """The question and what came of `attempts`: of each what stands behind its thought, if any.

    Where the window of `parent` is limited each attempt has an equal share of it, and of one that
    is longer its end is kept.
    """
    wrote = [attempt for attempt in attempts if attempt.said.strip()]
    share = None
    if parent.room is not None and wrote:
        share = max(1, (parent.room - _WORDS_TOKENS) // len(wrote))
    shown = (f"Attempt {attempt.key}:\n{fenced(_kept(attempt, share))}" for attempt in wrote)
    text = "\n\n".join((asked(parent.question), *shown))
    return Opening(conversation(parent.question, _RULES, text))


def _kept(attempt: Thread, tokens: int | None) -> str:
    """The end of an attempt, about so many tokens of it."""
    said = attempt.said
    _, thought, answer = said.rpartition(THINK[1])
    kept = answer if thought and answer.strip() else said
    if tokens is None or len(attempt.body) <= tokens:
        return kept.strip()
    chars = int(_SPARE * len(said) * tokens / len(attempt.body))
    return kept[max(0, len(kept) - chars) :].strip()
