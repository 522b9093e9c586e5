"""A result store in memory: the default within one process, and the fake in tests."""

from __future__ import annotations

import copy
from typing import Any

from weft.core.ports.clock import Clock, SystemClock
from weft.core.ports.store import Entry


class MemoryStore:
    """Implements `ResultStore` for one process. Keeps deep copies: nobody can mutate an entry."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._entries: dict[str, tuple[Any, float | None]] = {}

    async def get(self, key: str) -> Entry | None:
        found = self._entries.get(key)
        if found is None:
            return None
        value, expires_at = found
        if expires_at is not None and self._clock.wall().timestamp() >= expires_at:
            del self._entries[key]
            return None
        return Entry(copy.deepcopy(value))

    async def put(self, key: str, value: Any, ttl_s: float | None = None) -> None:
        expires_at = None if ttl_s is None else self._clock.wall().timestamp() + ttl_s
        self._entries[key] = (copy.deepcopy(value), expires_at)

    async def aclose(self) -> None:
        self._entries.clear()
