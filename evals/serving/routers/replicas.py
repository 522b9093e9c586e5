"""Replicas with prefix caches that count tokens, in virtual time. They compute nothing."""

from __future__ import annotations

import asyncio
import zlib
from array import array
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence

from evals.serving.programs import Ids
from evals.serving.server import KV_TOKENS, Counters
from evals.serving.systems.on_weft import ANSWER_TOKENS_PER_S, PROMPT_TOKENS_PER_S

BLOCK_TOKENS = 16
"""vLLM's block on a GPU. Only whole blocks are shared."""
_VOCABULARY = 50_000


def block_hashes(ids: Ids) -> list[int]:
    """A hash for each whole block, of all tokens up to its end."""
    found, before = [], 0
    for end in range(BLOCK_TOKENS, len(ids) + 1, BLOCK_TOKENS):
        block = array("I", ids[end - BLOCK_TOKENS : end]).tobytes()
        before = hash((before, block))
        found.append(before)
    return found


class PrefixCache:
    """Blocks by their hash, at most `tokens` of them. The block used longest ago leaves first.

    Of one prompt the last block leaves first, so that what is left is a beginning.
    """

    def __init__(self, tokens: int) -> None:
        self._most = tokens // BLOCK_TOKENS
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def hit_tokens(self, ids: Ids) -> int:
        """Tokens at the beginning of `ids` that are there. The last token is always computed."""
        found = 0
        for block in block_hashes(ids[:-1]):
            if block not in self._blocks:
                break
            found += BLOCK_TOKENS
        return found

    def add(self, ids: Ids) -> None:
        """Keep the blocks of `ids` as the ones used last."""
        for block in reversed(block_hashes(ids)):
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while len(self._blocks) > self._most:
            self._blocks.popitem(last=False)


class Replica:
    """A server that takes any number of requests at once, each at the speed of one alone.

    queried, hit   prompt tokens looked up in the cache, and found there
    running        requests now
    """

    def __init__(self, name: str, kv_tokens: int = KV_TOKENS) -> None:
        self.name = name
        self.queried = 0
        self.hit = 0
        self.written = 0
        self.running = 0
        self._cache = PrefixCache(kv_tokens)

    @property
    def computed(self) -> int:
        """Prompt tokens that had to be computed."""
        return self.queried - self.hit

    async def answer(
        self,
        prompt: Ids,
        tokens: int,
        priority: int = 0,  # noqa: ARG002 - of replicas that evict by it
    ) -> AsyncGenerator[Ids, None]:
        """() once the prompt has been computed, then the answer, which depends on the prompt only.

        As in vLLM, requests share the blocks of a prompt that is still being computed.
        """
        hit = self._cache.hit_tokens(prompt)
        self._cache.add(prompt)
        self.queried += len(prompt)
        self.hit += hit
        self.running += 1
        try:
            await asyncio.sleep((len(prompt) - hit) / PROMPT_TOKENS_PER_S)
            yield ()
            await asyncio.sleep(tokens / ANSWER_TOKENS_PER_S)
            self.written += tokens
            answer = written(prompt, tokens)
            self._cache.add((*prompt, *answer))
            yield answer
        finally:
            self.running -= 1


def written(prompt: Ids, tokens: int) -> Ids:
    """What every replica answers to `prompt`."""
    seed = zlib.crc32(array("I", prompt).tobytes())
    return tuple((seed + 7 * place) % _VOCABULARY for place in range(tokens))


class Replicas:
    """Implements `Counting` for all replicas together, which are new in each trace."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self.all = tuple(replicas)

    async def clean(self) -> Counters:
        """The counters."""
        return Counters(
            prefix_cache_queries=sum(each.queried for each in self.all),
            prefix_cache_hits=sum(each.hit for each in self.all),
            generation_tokens=sum(each.written for each in self.all),
        )
