"""What drafting may still lose in one sequence, so that it never ends much later than plainly."""

from __future__ import annotations

from typing import Final

START: Final = 0.5
SHARE: Final = 0.015
_MOST: Final = 4.0


class Ledger:
    """Counts in plain steps of the sequence: `START` may be lost, and `SHARE` of all steps.

    What drafts cost is taken from `room`, what they were right about is put in; but little of what
    was won is risked again. By the costs that it is told, a text of n steps takes no more than
    (1 + `SHARE`) * n + `START` of them.
    """

    def __init__(self) -> None:
        self.room = START

    def step(self, saved: int) -> None:
        """One pass has been made; it wrote so many tokens beside the target's own."""
        self.room = min(self.room + SHARE + saved, _MOST)

    def spend(self, steps: float) -> None:
        """A pass takes so much longer for what is drafted."""
        self.room -= steps
