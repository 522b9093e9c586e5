"""What a model is told between its replies: results, mistakes, that it is time to answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.agents.loops.form import Form

TURNS_PROMPT_VERSION: Final = "turns-3"

NO_TEXT: Final = "(nothing)"
"""Stands for a reply without text, which not every server takes back."""

STOP: Final = ("\nResults of the calls:",)
"""Where a model that is not held to a form stops: results are not its to write."""

LAST: Final = "No call is left. Answer now with what you know."


def results(lines: Sequence[str], *notes: str) -> str:
    """The results of calls, one to a line, and what else there is to say."""
    told = "Results of the calls:\n" + ("\n".join(lines) if lines else "(none)")
    return "\n\n".join([told, *(note for note in notes if note)])


def left_out(calls: int) -> str:
    """That calls were not made because they were too many; nothing where none was."""
    if not calls:
        return ""
    which = "One more call was" if calls == 1 else f"{calls:,} more calls were"
    return f"{which} left out: that is more than may be made."


def repeated(number: int) -> str:
    """That a call was made before."""
    return (
        f"This call was made before: its result is number {number}, and it was not made again."
        " Make a different call, or answer."
    )


def correction(problem: str, form: Form, *, constrained: bool) -> str:
    """That a reply cannot be used, why, and what is wanted."""
    if constrained:
        wanted = "Give the answer now." if form.final else "Use one of the forms above."
    else:
        calls, replan = ["`Call:`"] * bool(form.calls), ["`Replan:`"] * form.replan
        wanted = f"Write a line that begins with {' or '.join([*calls, *replan, '`Answer:`'])}."
    return f"Your reply cannot be used: {problem}. {wanted}"
