"""The settings of a circuit breaker; they refuse nothing themselves."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite


@dataclass(frozen=True, slots=True)
class Breaker:
    """When calls of a failing tool, tool server or model are refused, and when they are tried.

    failures   so many failed calls within `within_s` seconds open the breaker; a success between
               them changes nothing
    after_s    so many seconds later it lets one call at a time through
    successes  so many of these, each successful, close it; one failure opens it again

    Raises: `ValueError` for what is out of range.
    """

    failures: int = 5
    within_s: float = 300.0
    after_s: float = 60.0
    successes: int = 3

    def __post_init__(self) -> None:
        for name in ("failures", "successes"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} of a breaker is a number of at least 1, got {value!r}")
        for name in ("within_s", "after_s"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not (isfinite(value) and value > 0):
                raise ValueError(f"{name} of a breaker is seconds above 0, got {value!r}")
