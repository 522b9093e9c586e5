"""One conversation that reads several attempts at a question and answers it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.reasoning.parsing import fence
from weft.reasoning.protocols.blocks import THINK
from weft.reasoning.question import conversation, question_text
from weft.reasoning.runtime.moves import Opening
from weft.reasoning.runtime.thread import Thread

_RULES: Final = """\
You are given a question and several independent attempts at it. They were made without knowledge of
each other; any of them may be wrong, and several that agree may still be wrong. Compare them, find
where they differ and check that step yourself, then answer the question. Give one final answer, not
a review of the attempts."""
_FRAME_CHARS: Final = 40
_SPARE: Final = 0.9


def synthesis(parent: Thread, attempts: Sequence[Thread]) -> Opening:
    """The question and the results of `attempts`: of each the text after its thought, if any.

    Where the window of `parent` is limited each attempt gets an equal share of it, for its end.
    """
    wrote = [attempt for attempt in attempts if attempt.safe_text.strip()]
    most = _share_chars(parent.room, wrote)
    shown = (f"Attempt {attempt.key}:\n{fence(_excerpt(attempt, most))}" for attempt in wrote)
    text = "\n\n".join((question_text(parent.question), *shown))
    return Opening(conversation(parent.question, _RULES, text))


def _excerpt(attempt: Thread, chars: int | None) -> str:
    """The end of an attempt, without its thought where an answer follows it."""
    text = attempt.safe_text
    _, _, answer = text.rpartition(THINK[1])
    text = (answer.strip() or text).strip()
    return text if chars is None else text[max(0, len(text) - chars) :]


def _share_chars(room: int | None, attempts: Sequence[Thread]) -> int | None:
    """The share of each attempt in characters; None: no limit.

    The attempts themselves determine the characters per token.
    """
    if room is None or not attempts:
        return None
    written = sum(len(attempt.safe_text) for attempt in attempts)
    chars = room * written / max(1, sum(len(attempt.body) for attempt in attempts))
    words = len(_RULES) + _FRAME_CHARS * len(attempts)
    return max(0, int(_SPARE * (chars - words)) // len(attempts))
