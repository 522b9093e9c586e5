"""Python's cyclic garbage collector while an evaluation runs: rarer, for all of the process."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

_RARE: Final = (50_000, 20, 100)
"""At least these thresholds; Python's own ones are 700, 10, 10."""
_lock: Final = Lock()
_before: list[tuple[int, int, int]] = []
"""The thresholds before the first of the evaluations that run now, once for each of them."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect a hundred times less often until this and all other evaluations have ended.

    An evaluation keeps what happened in all its cases, and each collection goes through it again.
    A collector that is switched off stays off.
    """
    with _lock:
        _before.append(_before[0] if _before else gc.get_threshold())
        if gc.get_threshold()[0]:
            gc.set_threshold(*map(max, _RARE, gc.get_threshold()))
    try:
        yield
    finally:
        with _lock:
            own = _before.pop()
            if not _before:
                gc.set_threshold(*own)
