"""Budgets of tokens, seconds and money: values that add, split and compare; they enforce nothing.

Sequential parts add up. Parallel parts add tokens and money but take the longest time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from weft.core.values import Usage

_N = TypeVar("_N", int, float)


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits for a run, a branch or a map item; None means no limit. Money is in US dollars."""

    tokens: int | None = None
    seconds: float | None = None
    money: float | None = None

    def __post_init__(self) -> None:
        for name in ("tokens", "seconds", "money"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ValueError(f"budget {name} must not be negative, got {value}")

    @property
    def unlimited(self) -> bool:
        """True when nothing is limited."""
        return self.tokens is None and self.seconds is None and self.money is None

    def split(self, parts: int) -> tuple[Budget, ...]:
        """Equal shares for `parts` parallel branches: tokens and money divide, seconds do not.

        Shares of tokens differ by at most one and sum to the whole.
        """
        if parts < 1:
            raise ValueError(f"a budget splits into one or more parts, got {parts}")
        share, rest = divmod(self.tokens, parts) if self.tokens is not None else (0, 0)
        money = None if self.money is None else self.money / parts
        return tuple(
            Budget(None if self.tokens is None else share + (i < rest), self.seconds, money)
            for i in range(parts)
        )

    def then(self, after: Budget) -> Budget:
        """The budget of this followed by `after`: everything adds up."""
        return Budget(
            _both(self.tokens, after.tokens, lambda a, b: a + b),
            _both(self.seconds, after.seconds, lambda a, b: a + b),
            _both(self.money, after.money, lambda a, b: a + b),
        )

    def beside(self, other: Budget) -> Budget:
        """The budget of this in parallel with `other`: tokens and money add, time is the longer."""
        return Budget(
            _both(self.tokens, other.tokens, lambda a, b: a + b),
            _both(self.seconds, other.seconds, max),
            _both(self.money, other.money, lambda a, b: a + b),
        )

    def exceeded(self, usage: Usage, elapsed_s: float) -> str | None:
        """Which limit is reached, in words, or None. Usage equal to a limit reaches it."""
        if self.tokens is not None and usage.tokens >= self.tokens:
            return f"{usage.tokens:,} of {self.tokens:,} tokens spent"
        if self.money is not None and usage.money >= self.money:
            return f"${usage.money:.4f} of ${self.money:.4f} spent"
        if self.seconds is not None and elapsed_s >= self.seconds:
            return f"{elapsed_s:.1f} of {self.seconds:.1f} s spent"
        return None


def _both(a: _N | None, b: _N | None, combine: Callable[[_N, _N], _N]) -> _N | None:
    return None if a is None or b is None else combine(a, b)
