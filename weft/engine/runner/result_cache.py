"""Results of earlier runs, reused in place of work: reads from and writes to a run's result store.

A store that fails costs a log line, never a node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Final

from weft.core.events import NodeFinished
from weft.core.ids import NodeId
from weft.core.ports import ResultStore, StoreEntry
from weft.engine.graph import content_digest
from weft.engine.graph.node import NodeCache
from weft.engine.scheduler.commands import Start

LOOKUP_NODE: Final[ContextVar[NodeId]] = ContextVar("LOOKUP_NODE")
"""The node whose result is looked up or kept, in a store's `get` and `put`."""


class NodeResultCache:
    """The results of one run's nodes that have a cache policy.

    `log` logs a line for the user; `missed` gets a node and its key that the store does not have.
    """

    def __init__(
        self,
        store: ResultStore,
        log: Callable[[NodeId, str], None],
        missed: Callable[[NodeId, str], None],
    ) -> None:
        self._store = store
        self._log = log
        self._missed = missed
        self._keys: dict[NodeId, tuple[str, float | None]] = {}

    async def find(self, start: Start, cache: NodeCache) -> StoreEntry | None:
        """The store's entry for these inputs; without one, the result will be stored."""
        key = content_digest.key(cache, start.argument)
        entry = None if key is None else await self._look_up(start, key)
        if entry is None and key is not None and start.state.epoch == start.epoch:
            self._keys[start.state.node.id] = (key, cache.ttl_s)
        return entry

    def ended(self, event: NodeFinished) -> Coroutine[None, None, None] | None:
        """The task that stores the result of an ended node, if it is to be stored."""
        outcome, awaited = event.outcome, self._keys.pop(event.node, None)
        if awaited is None or not outcome.ok or outcome.via or outcome.partial:
            return None
        return self._keep(event.node, outcome.value, *awaited)

    async def _keep(self, node: NodeId, value: object, key: str, ttl_s: float | None) -> None:
        LOOKUP_NODE.set(node)
        try:
            await self._store.put(key, value, ttl_s)
        except Exception as error:  # noqa: BLE001 - a broken cache must not fail a node
            self._log(node, f"the result is not cached: {error}")

    async def _look_up(self, start: Start, key: str) -> StoreEntry | None:
        node = start.state.node.id
        LOOKUP_NODE.set(node)
        try:
            entry = await self._store.get(key)
        except asyncio.CancelledError:
            return None
        except Exception as error:  # noqa: BLE001 - a broken cache must not fail a node
            self._log(node, f"the cache cannot be read: {error}")
            return None
        if entry is None and start.state.epoch == start.epoch:
            self._missed(node, key)
        return entry
