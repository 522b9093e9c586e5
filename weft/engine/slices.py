"""Work on many nodes in slices, so that none of it holds up a run. Counts, and measures no time.

One scheduling step takes in, ends and starts at most `SLICE` nodes each; the rest follows in the
next pass of the event loop. Timers, signals and cancellations come between.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")
SLICE: Final = 500
UNLIMITED: Final = float("inf")


def slices(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """`items` in order, at most `SLICE` at a time; all at once where they are so few."""
    if len(items) <= SLICE:
        yield items
        return
    for start in range(0, len(items), SLICE):
        yield items[start : start + SLICE]


def finish(steps: Generator[None, None, T]) -> T:
    """What `steps` come to, without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
