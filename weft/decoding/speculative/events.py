"""What a host reports of a sequence beside its counters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fallback:
    """From here on the sequence is decoded plainly: its drafter failed."""

    method: str
    reason: str
