"""What every source of weights shares: the way it fails."""

from __future__ import annotations


class SourceFailed(Exception):
    """A source could not give the weights. The next source is tried; never leaves this package.

    `temporary` tells a network that may come back from content that is wrong.
    """

    def __init__(self, reason: str, *, temporary: bool = False) -> None:
        super().__init__(reason)
        self.temporary = temporary
