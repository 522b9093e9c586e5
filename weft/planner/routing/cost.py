"""What a call costs, and what a cost is worth to whom. Knows no tool and no graph."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import Final

DOWN: Final = inf
"""The health of a tool that must not be called."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call of a tool is expected to take.

    `latency_s` seconds, `money` US dollars, `reliability` the chance that it succeeds (above 0, at
    most 1), `risk` what may go wrong when it does succeed (0: nothing).

    Raises: `ValueError` for what is out of range.
    """

    latency_s: float = 1.0
    money: float = 0.0
    reliability: float = 0.95
    risk: float = 0.0

    def __post_init__(self) -> None:
        for name in ("latency_s", "money", "risk"):
            _check(name, getattr(self, name))
        if not 0 < self.reliability <= 1:
            raise ValueError(
                f"reliability is a number above 0 and at most 1, got {self.reliability}"
            )


@dataclass(frozen=True, slots=True)
class Weights:
    """What matters to a user: the price of a second, of a dollar, of risk, of making a call at all.

    `reliability` is an exponent: 0 ignores it, 1 takes the cost of repeating until success, more
    is cautious.

    Raises: `ValueError` for what is out of range.
    """

    latency: float = 1.0
    money: float = 10.0
    reliability: float = 1.0
    risk: float = 1.0
    call: float = 0.001

    def __post_init__(self) -> None:
        for name in ("latency", "money", "reliability", "risk", "call"):
            _check(name, getattr(self, name))

    def price(self, cost: Cost, health: float = 1.0) -> float:
        """base x health x (1 + risk), as in Self-Healing Router (arXiv 2603.01548).

        base = (call + latency + money) / reliability: what it costs until it succeeds. `health` is
        1 for a tool that is well, more for one that is degraded, `DOWN` for one that is closed.
        """
        once = self.call + self.latency * cost.latency_s + self.money * cost.money
        base = once / cost.reliability**self.reliability
        return DOWN if health == DOWN else base * health * (1 + self.risk * cost.risk)


def _check(name: str, value: float) -> None:
    if not (isfinite(value) and value >= 0):
        raise ValueError(f"{name} is a number of at least 0, got {value}")
