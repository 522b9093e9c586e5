"""What a fleet has done so far, in plain counts. Knows no time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class FleetStats:
    """Counts since the fleet was made.

    sent              requests that went to a replica, of all kinds
    resumed           of these, streams that went on from the tokens of a broken one
    repeated          of these, asked again from the start after something had been delivered
    retried           calls asked again because a replica was overloaded
    moved             calls that a broken replica gave back
    warmed            prompts computed ahead by `warm`
    held_for_prefix   calls that waited for a prefix they share
    cancelled         calls that their caller closed
    timed_out         calls whose time was over
    received_tokens   token ids that came back, where replicas tell
    most_waiting      longest queue so far
    """

    sent: int = 0
    resumed: int = 0
    repeated: int = 0
    retried: int = 0
    moved: int = 0
    warmed: int = 0
    held_for_prefix: int = 0
    cancelled: int = 0
    timed_out: int = 0
    received_tokens: int = 0
    most_waiting: int = 0
