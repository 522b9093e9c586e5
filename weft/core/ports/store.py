"""The result store port: values kept under keys made of their content; and the store in memory."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Protocol

from weft.core.ports.clock import Clock, SystemClock


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """A kept value. A class of its own, so that a kept None differs from nothing kept."""

    value: Any


class ResultStore(Protocol):
    """Keeps results by key. A stored value is never mutated by the store, nor by its readers."""

    async def get(self, key: str) -> StoreEntry | None:
        """The entry under `key`, or None when there is none or it has expired.

        Raises: `StoreError`.
        """

    async def put(self, key: str, value: Any, ttl_s: float | None = None) -> None:
        """Keep `value` under `key`, for `ttl_s` seconds of wall time (None: for ever).

        The last writer of a key wins. Raises: `TypeError` when the store cannot hold the value,
        `StoreError`.
        """

    async def aclose(self) -> None:
        """Let go of files and connections. Harmless when called twice."""


class MemoryStore:
    """Implements `ResultStore` for one process. Keeps deep copies: nobody can mutate an entry."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._entries: dict[str, tuple[Any, float | None]] = {}

    async def get(self, key: str) -> StoreEntry | None:
        found = self._entries.get(key)
        if found is None:
            return None
        value, expires_at = found
        if expires_at is not None and self._clock.wall().timestamp() >= expires_at:
            del self._entries[key]
            return None
        return StoreEntry(copy.deepcopy(value))

    async def put(self, key: str, value: Any, ttl_s: float | None = None) -> None:
        expires_at = None if ttl_s is None else self._clock.wall().timestamp() + ttl_s
        self._entries[key] = (copy.deepcopy(value), expires_at)

    async def aclose(self) -> None:
        self._entries.clear()
