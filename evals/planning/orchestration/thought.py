"""Thoughts of a stated length. What they say does not matter, so it is always the same."""

from __future__ import annotations

from itertools import cycle, islice
from typing import Final

from evals.planning.orchestration.tokens import split

_THINKING: Final = (
    "I need to find out what the next source says about this and keep in mind what has been"
    " asked, then compare it with what is known so far and decide what is still missing."
)


def thought(tokens: int) -> str:
    """A thought of so many tokens."""
    return "".join(islice(cycle(split(f" {_THINKING}")), tokens)).strip()
