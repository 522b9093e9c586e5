"""The right to write to a run, as whoever got it holds it. Does not know what ends it."""

from __future__ import annotations

from collections.abc import Callable


class Claimed:
    """Implements `Claim`. `let_go` ends it, and does no harm when repeated."""

    def __init__(self, let_go: Callable[[], None]) -> None:
        self._let_go = let_go

    def release(self) -> None:
        self._let_go()
