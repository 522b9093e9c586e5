"""The result store port: values kept under keys made of their content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Entry:
    """A kept value. A class of its own, so that a kept None differs from nothing kept."""

    value: Any


class ResultStore(Protocol):
    """Keeps results by key. A stored value is never mutated by the store, nor by its readers."""

    async def get(self, key: str) -> Entry | None:
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
