"""How a model is told that its plan cannot be read, so that it writes the rest of it anew."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.errors import PlanError
from weft.core.values import Message
from weft.planner.plan import Step
from weft.planner.text.writer import write_step

_SHOWN = 4000


def mending(
    messages: Sequence[Message], text: str, error: PlanError, begun: Sequence[Step]
) -> tuple[Message, ...]:
    """`messages` with the plan that was written so far, and what is wrong with it.

    `begun` are its steps that could be read: they run already, and stay.
    """
    following = max((step.number for step in begun), default=0) + 1
    word = [f"This plan has an error: {error}", ""]
    if begun:
        word += ["These steps are under way; do not write them again, refer to their results:"]
        word += [write_step(step) for step in begun]
        word += ["", f"Write the rest of the plan, beginning with number {following}."]
    else:
        word += ["Write the whole plan again."]
    word += ["Write one call in each line, and the line with join(...) at the end."]
    return (*messages, Message("assistant", _cut(text)), Message("user", "\n".join(word)))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + " ..."
