"""The port of budgets: how much to draft at a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Lengths(Protocol):
    """How much to draft, from the past only."""

    def length(self) -> int:
        """At most so many nodes now."""

    def observe(self, drafted: int, accepted: int) -> None:
        """What came of the last draft: how deep it was, and how far it was accepted."""


@dataclass(frozen=True, slots=True)
class Always:
    """Implements `Lengths`: the same length at every step; 0 is plain decoding."""

    nodes: int

    def length(self) -> int:
        return self.nodes

    def observe(self, drafted: int, accepted: int) -> None:
        """Learns nothing."""
