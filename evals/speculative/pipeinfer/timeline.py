"""Who worked when, and which of it came to nothing: draft, target and stages side by side.

Knows no models, and no time but that of the clock it is given.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

_MOST: Final = 100_000
"""Intervals that are kept; a timeline is for looking at, not for a server's life."""


@dataclass(frozen=True, slots=True)
class Interval:
    """`who` worked from `start_s` to `end_s` on `tokens`, of which `cancelled` came to nothing."""

    who: str
    start_s: float
    end_s: float
    tokens: int
    cancelled: int = 0

    @property
    def what(self) -> str:
        """`useful`, or `cancelled` where all of it came to nothing."""
        return "cancelled" if self.tokens and self.cancelled >= self.tokens else "useful"


class Timeline:
    """Intervals as they happen, from several threads. `now` tells seconds, and never goes back."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._intervals: list[Interval] = []

    @contextmanager
    def working(self, who: str, tokens: int) -> Iterator[int]:
        """`who` works on `tokens` within the block; yields what `discard` wants to know."""
        with self._lock:
            stamp = len(self._intervals)
            if stamp < _MOST:
                start = self._now()
                self._intervals.append(Interval(who, start, start, tokens))
        try:
            yield stamp
        finally:
            with self._lock:
                if stamp < _MOST:
                    kept = self._intervals[stamp]
                    self._intervals[stamp] = replace(kept, end_s=self._now())

    def discard(self, stamp: int, tokens: int = 1) -> None:
        """So many tokens of that work came to nothing."""
        with self._lock:
            if 0 <= stamp < _MOST:
                kept = self._intervals[stamp]
                self._intervals[stamp] = replace(kept, cancelled=kept.cancelled + tokens)

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """In the order in which they began."""
        with self._lock:
            return tuple(self._intervals)

    @property
    def rows(self) -> list[dict[str, str | float | int]]:
        """The intervals as a table: who, what, start_s, end_s, tokens, cancelled."""
        return [
            {
                "who": kept.who,
                "what": kept.what,
                "start_s": kept.start_s,
                "end_s": kept.end_s,
                "tokens": kept.tokens,
                "cancelled": kept.cancelled,
            }
            for kept in self.intervals
        ]


def busy_s(intervals: Sequence[Interval]) -> float:
    """Seconds in which at least one of `intervals` goes on."""
    return sum(end - start for start, end in _merged(intervals))


def overlap_s(some: Sequence[Interval], others: Sequence[Interval]) -> float:
    """Seconds in which one of `some` and one of `others` go on at the same time."""
    return busy_s(some) + busy_s(others) - busy_s([*some, *others])


def cancelled_tokens(intervals: Sequence[Interval]) -> int:
    """Tokens that were worked on for nothing."""
    return sum(kept.cancelled for kept in intervals)


def drawn(intervals: Sequence[Interval], columns: int = 100) -> str:
    """A line of text for each who: `#` useful work, `x` cancelled, `.` none.

    A column shows the kind of work that fills most of it; where any is done, it is not `.`.
    """
    if not intervals:
        return ""
    first = min(kept.start_s for kept in intervals)
    width = (max(kept.end_s for kept in intervals) - first) / columns or 1.0
    names = list(dict.fromkeys(kept.who for kept in intervals))
    lines = []
    for name in names:
        useful, lost = [0.0] * columns, [0.0] * columns
        for kept in intervals:
            if kept.who == name:
                _fill(lost if kept.what == "cancelled" else useful, kept, first, width)
        marks = [
            "." if not u + x else "x" if x > u else "#" for u, x in zip(useful, lost, strict=True)
        ]
        lines.append(f"{name:>{max(map(len, names))}} {''.join(marks)}")
    return "\n".join(lines)


def _fill(cells: list[float], kept: Interval, first: float, width: float) -> None:
    low = int((kept.start_s - first) / width)
    high = int((kept.end_s - first) / width)
    for cell in range(low, min(high, len(cells) - 1) + 1):
        left = first + cell * width
        cells[cell] += max(0.0, min(kept.end_s, left + width) - max(kept.start_s, left))


def _merged(intervals: Sequence[Interval]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for start, end in sorted((kept.start_s, kept.end_s) for kept in intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
