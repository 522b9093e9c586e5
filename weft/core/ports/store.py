"""The result store port: values under keys derived from their inputs; and an in-memory store."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Protocol

from weft.core.ports.clock import Clock, SystemClock


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """A stored value; wraps it so that a stored None differs from a missing entry."""

    value: Any


class ResultStore(Protocol):
    """Stores results by key. Neither the store nor its readers mutate a stored value."""

    async def get(self, key: str) -> StoreEntry | None:
        """The entry under `key`, or None when there is none or it has expired.

        Raises: `StoreError`.
        """

    async def put(self, key: str, value: Any, ttl_s: float | None = None) -> None:
        """Store `value` under `key`, for `ttl_s` seconds of wall time (None: for ever).

        The last writer of a key wins. Raises: `TypeError` when the store cannot hold the value,
        `StoreError`.
        """

    async def aclose(self) -> None:
        """Close files and connections. Harmless when repeated."""


class MemoryStore:
    """Implements `ResultStore` for one process. Stores deep copies: no caller can mutate them."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._entries: dict[str, tuple[Any, float | None]] = {}

    async def get(self, key: str) -> StoreEntry | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        value, expires_at = entry
        if expires_at is not None and self._clock.wall().timestamp() >= expires_at:
            del self._entries[key]
            return None
        return StoreEntry(copy.deepcopy(value))

    async def put(self, key: str, value: Any, ttl_s: float | None = None) -> None:
        expires_at = None if ttl_s is None else self._clock.wall().timestamp() + ttl_s
        self._entries[key] = (copy.deepcopy(value), expires_at)

    async def aclose(self) -> None:
        self._entries.clear()
