"""The store of rate limits: small texts that processes change one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, runtime_checkable

T = TypeVar("T")
RateChange = Callable[[str, float], tuple[str, T]]
"""Maps a text and the seconds of the store's clock to the new text and a result; repeatable."""


@runtime_checkable
class RateStore(Protocol):
    """Keeps one text for each limit. Its methods block briefly, from any thread."""

    def change_rate(self, key: str, change: RateChange[T], now_s: float | None = None) -> T:
        """Change the text of `key`, empty at first, in one transaction; return the result.

        `now_s` replaces the store's own clock (seconds since 1970). Raises: `StoreError`.
        """
