"""A replica that runs short of keys and values: it waits, evicts, and computes prompts in turn.

Eviction follows SGLang's `--radix-eviction-policy`: `lru`, which is also vLLM's only way, or
`priority`: the least priority leaves first, and of equal ones the one used longest ago. A block has
the greatest priority of all requests that used it, as in SGLang's radix cache.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from typing import Literal

from evals.serving.programs import Ids
from evals.serving.routers.replicas import BLOCK_TOKENS, Replica, block_hashes, written
from evals.serving.systems.on_weft import ANSWER_TOKENS_PER_S, PROMPT_TOKENS_PER_S

Eviction = Literal["lru", "priority"]
_BATCH = 8
"""Requests among which the server's speed of writing is shared out."""


class KvPool:
    """Blocks of running requests, which stay, and of earlier ones, which leave when room is needed.

    Raises: `ValueError` from `fits` for a request that is larger than the pool.
    """

    def __init__(self, tokens: int, eviction: Eviction) -> None:
        self._most = tokens // BLOCK_TOKENS
        self._by_priority = eviction == "priority"
        self._cached: dict[int, tuple[int, int]] = {}
        self._heap: list[tuple[int, int, int]] = []
        self._held: Counter[int] = Counter()
        self._reserved = 0
        self._tick = 0

    @property
    def used(self) -> int:
        """Blocks that cannot be evicted now."""
        return len(self._held) + self._reserved

    def hit(self, blocks: Sequence[int]) -> int:
        """How many of the first `blocks` are there."""
        missing = (place for place, block in enumerate(blocks) if block not in self._cached)
        return next(missing, len(blocks))

    def fits(self, blocks: Sequence[int], answer: int) -> bool:
        """Whether `blocks` and as many more as `answer` have room beside what is held."""
        if len(blocks) + answer > self._most:
            raise ValueError(f"a request of {len(blocks) + answer} blocks, a pool of {self._most}")
        new = sum(block not in self._held for block in blocks)
        return self.used + new + answer <= self._most

    def hold(self, blocks: Sequence[int], answer: int, priority: int) -> None:
        """Keep `blocks` for a request that runs, and room for its answer."""
        self._held.update(blocks)
        self._reserved += answer
        self._touch(blocks, priority)

    def release(self, blocks: Sequence[int], answer: int) -> None:
        """The request has ended; its blocks stay until room is needed."""
        _less(self._held, blocks)
        self._reserved -= answer

    def add(self, blocks: Sequence[int], priority: int) -> None:
        """Keep the blocks of a request that has ended, as the ones used last."""
        self._touch(blocks, priority)

    def _touch(self, blocks: Sequence[int], priority: int) -> None:
        for block in reversed(blocks):  # the end of a prompt leaves before its beginning
            self._tick += 1
            rank = priority if self._by_priority else 0
            if block in self._cached:
                rank = max(rank, self._cached[block][0])
            self._cached[block] = (rank, self._tick)
            heapq.heappush(self._heap, (rank, self._tick, block))
        self._evict()

    def _evict(self) -> None:
        kept: list[tuple[int, int, int]] = []
        while len(self._cached) + self._reserved > self._most:
            rank, tick, block = heapq.heappop(self._heap)
            if self._cached.get(block) != (rank, tick):
                continue
            if block in self._held:
                kept.append((rank, tick, block))
                continue
            del self._cached[block]
        for entry in kept:
            heapq.heappush(self._heap, entry)


class BusyReplica(Replica):
    """First come, first served: a request waits for room, then for the prompts before its own.

    prefilling   prompt tokens of requests here that are yet to be computed
    """

    def __init__(self, name: str, kv_tokens: int, eviction: Eviction = "lru") -> None:
        super().__init__(name, kv_tokens)
        self.prefilling = 0
        self._prompts: Counter[int] = Counter()
        self._pool = KvPool(kv_tokens, eviction)
        self._queue = asyncio.Lock()
        self._freed = asyncio.Event()
        self._computing = asyncio.Lock()

    def cached(self, blocks: Sequence[int]) -> int:
        """How many of the first `blocks` are there."""
        return self._pool.hit(blocks)

    def potential(self, blocks: Sequence[int]) -> int:
        """Blocks of the prompts here, waiting or running, if these came too; shared ones once."""
        return len(self._prompts) + sum(block not in self._prompts for block in blocks)

    async def answer(
        self, prompt: Ids, tokens: int, priority: int = 0
    ) -> AsyncGenerator[Ids, None]:
        """() once the prompt has been computed, then the answer."""
        blocks, room = block_hashes(prompt), -(-tokens // BLOCK_TOKENS) + 1
        waiting = len(prompt) - BLOCK_TOKENS * self.cached(blocks)
        self.running, self.prefilling = self.running + 1, self.prefilling + waiting
        self._prompts.update(blocks)
        try:
            hit = await self._started(prompt, blocks, room, priority)
            try:
                async with self._computing:
                    await asyncio.sleep((len(prompt) - hit) / PROMPT_TOKENS_PER_S)
                self.prefilling, waiting = self.prefilling - waiting, 0
                yield ()
                await asyncio.sleep(tokens * _BATCH / ANSWER_TOKENS_PER_S)
            finally:
                self._pool.release(blocks, room)
                self._freed.set()
            self.written += tokens
            answer = written(prompt, tokens)
            self._pool.add(block_hashes((*prompt, *answer)), priority)
            yield answer
        finally:
            self.running, self.prefilling = self.running - 1, self.prefilling - waiting
            _less(self._prompts, blocks)

    async def _started(self, prompt: Ids, blocks: list[int], room: int, priority: int) -> int:
        """Wait for room and take it. Prompt tokens that were there already."""
        async with self._queue:
            while not self._pool.fits(blocks, room):
                self._freed.clear()
                await self._freed.wait()
            hit = BLOCK_TOKENS * self._pool.hit(block_hashes(prompt[:-1]))
            self._pool.hold(blocks, room, priority)
        self.queried += len(prompt)
        self.hit += hit
        return hit


def _less(counts: Counter[int], blocks: Sequence[int]) -> None:
    counts.subtract(blocks)
    for block in blocks:
        if not counts[block]:
            del counts[block]
