"""How long ranks talk to each other. Sizes in bytes, times in seconds. Knows no model.

Ring formulas as in Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
Operations in MPICH" (2005).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """A connection of each rank to its peers: bytes per second in one direction, and one delay."""

    bytes_s: float
    hop_s: float

    def all_reduce_s(self, size_bytes: float, ranks: int) -> float:
        """Everyone ends with the sum: 2 (n - 1) messages of 1/n of the size."""
        if ranks == 1:
            return 0.0
        messages = 2 * (ranks - 1)
        return messages * (self.hop_s + size_bytes / ranks / self.bytes_s)

    def gather_s(self, size_bytes: float, ranks: int) -> float:
        """Everyone ends with all parts of something of this size in all."""
        if ranks == 1:
            return 0.0
        return (ranks - 1) * (self.hop_s + size_bytes / ranks / self.bytes_s)

    def exchange_s(self, size_bytes: float, ranks: int, destinations: int) -> float:
        """All-to-all: each rank sends its tokens, this size, to so many of the others."""
        if ranks == 1:
            return 0.0
        copies = min(destinations, ranks - 1)
        return (ranks - 1) * self.hop_s + copies * size_bytes / self.bytes_s

    def send_s(self, size_bytes: float) -> float:
        """One message from a rank to another."""
        return self.hop_s + size_bytes / self.bytes_s
