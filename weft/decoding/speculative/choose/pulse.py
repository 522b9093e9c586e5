"""What steps really take beside what was measured of passes, by the clock between proposals."""

from __future__ import annotations

from collections import defaultdict, deque
from statistics import median
from typing import Final

from weft.core.ports.clock import Clock

_LAST: Final = 32
_ENOUGH: Final = 6
_LEAST: Final = 0.5
_MOST: Final = 8.0
_PLAIN_OF: Final = 8


class Pulse:
    """Compares steps that read drafts with steps of as many rows that read none.

    Medians, because other things happen between two proposals now and then: a prompt is read, or
    nobody asks for anything.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: tuple[float, int, float] | None = None
        self._plain: dict[int, deque[float]] = defaultdict(lambda: deque(maxlen=_LAST))
        self._drafted: dict[int, int] = defaultdict(int)
        self._drafting: dict[int, deque[tuple[float, float]]] = defaultdict(
            lambda: deque(maxlen=_LAST)
        )

    def proposed(self, rows: int, expected: float) -> None:
        """Drafts were proposed: the step is expected to take so many plain ones of its rows."""
        self._since = (self._clock.now(), rows, expected)

    def begins(self, rows: int) -> None:
        """The next proposal is asked for: the step of the last one is over."""
        if self._since is None or self._since[1] != rows:
            return
        begun, _, expected = self._since
        seconds = self._clock.now() - begun
        if expected > 1.0:
            self._drafting[rows].append((seconds, expected))
            self._drafted[rows] += 1
        else:
            self._plain[rows].append(seconds)

    def lacks(self, rows: int) -> bool:
        """Whether a step without drafts is due, because too few were seen to compare with.

        One of eight steps, and only until there are enough.
        """
        few = len(self._plain[rows])
        return few < _ENOUGH and self._drafted[rows] >= _PLAIN_OF * (few + 1)

    def steepness(self, rows: int) -> float:
        """How much dearer drafts are than was thought, as a factor; 1 until that is known."""
        plain, drafting = self._plain[rows], self._drafting[rows]
        if len(plain) < _ENOUGH or len(drafting) < _ENOUGH:
            return 1.0
        one = median(plain)
        if one <= 0.0:
            return 1.0
        found = median((seconds / one - 1.0) / (over - 1.0) for seconds, over in drafting)
        return min(max(found, _LEAST), _MOST)
