"""How many calls were asked for, and how many of them had to be made. Decides nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ReuseCounts:
    """What a `ReusingTools` has done so far.

    asked    calls that somebody asked for
    shared   those that an identical call of this run answered
    stored   those that the store answered
    made     calls that reached the tools; a batch is one
    batches  how many of these were batches
    fused    the calls inside those batches
    """

    asked: int = 0
    shared: int = 0
    stored: int = 0
    made: int = 0
    batches: int = 0
    fused: int = 0
