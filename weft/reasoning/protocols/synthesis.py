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
    """The question and what came of `attempts`: of each what stands behind its thought, if any.

    Where the window of `parent` is limited each attempt has an equal share of it, and of one that
    is longer its end is kept.
    """
    wrote = [attempt for attempt in attempts if attempt.said.strip()]
    most = _share_chars(parent.room, wrote)
    shown = (f"Attempt {attempt.key}:\n{fence(_kept(attempt, most))}" for attempt in wrote)
    text = "\n\n".join((question_text(parent.question), *shown))
    return Opening(conversation(parent.question, _RULES, text))


def _kept(attempt: Thread, chars: int | None) -> str:
    """The end of an attempt: what stands behind its thought, if that is anything."""
    said = attempt.said
    _, _, answer = said.rpartition(THINK[1])
    kept = (answer.strip() or said).strip()
    return kept if chars is None else kept[max(0, len(kept) - chars) :]


def _share_chars(room: int | None, attempts: Sequence[Thread]) -> int | None:
    """How many characters of each attempt there is room for; None: for all.

    How many characters a token has is taken from the attempts themselves.
    """
    if room is None or not attempts:
        return None
    written = sum(len(attempt.said) for attempt in attempts)
    chars = room * written / max(1, sum(len(attempt.body) for attempt in attempts))
    words = len(_RULES) + _FRAME_CHARS * len(attempts)
    return max(0, int(_SPARE * (chars - words)) // len(attempts))
