"""How large a plan may be. Knows no text and no tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """Bounds of one plan: what is larger is refused, whoever wrote it.

    `steps` in one plan; `text` characters of a plan and `step` characters of one step or thought,
    as text; `depth` of nested lists and objects, and of the path of a reference.

    Raises: `ValueError` where one is not positive.
    """

    steps: int = 64
    text: int = 200_000
    step: int = 20_000
    depth: int = 16

    def __post_init__(self) -> None:
        if min(self.steps, self.text, self.step, self.depth) < 1:
            raise ValueError("every limit of a plan is at least 1")


LIMITS: Final = PlanLimits()
"""The limits where nobody asks for others."""
