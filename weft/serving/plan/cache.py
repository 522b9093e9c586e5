"""The KV cache of one simulated replica, counted in tokens. Knows no block by itself.

Every sequence is charged one block more than its tokens, which bounds the blocks that it only
partly fills. Shared prefixes are charged once while somebody uses them; after that they stay for
the next one as long as there is room, as free blocks keep their content in vLLM.
"""

from __future__ import annotations

from weft.serving.plan.job import Job

_Prefix = tuple[str | None, int]  # its name, and its whole blocks in tokens


class Cache:
    """Who holds how much. Mutates the jobs' `own_tokens` and `holds_prefix`."""

    def __init__(self, capacity_tokens: int, block_tokens: int) -> None:
        self.capacity_tokens = capacity_tokens
        self.used_tokens = 0
        self.peak_tokens = 0
        self._block = block_tokens
        self._users: dict[_Prefix, int] = {}  # of every prefix that was ever computed

    @property
    def free_tokens(self) -> int:
        """How many more tokens fit."""
        return self.capacity_tokens - self.used_tokens

    def admit(self, job: Job, spare_tokens: int) -> bool:
        """Reserve room for all that `job` has to compute, if `spare_tokens` are free besides.

        A prefix that is there counts as computed, in whole blocks; one token is always computed.
        """
        prefix = self._prefix(job)
        shared = 0
        if prefix in self._users:
            shared = self._whole_blocks(min(prefix[1], job.length_tokens - 1))
        own = job.length_tokens - shared + self._block
        fresh = prefix[1] if shared and not self._users[prefix] else 0
        if own + fresh + spare_tokens > self.free_tokens:
            return False
        job.own_tokens, job.computed_tokens, job.holds_prefix = own, shared, bool(shared)
        if shared:
            self._users[prefix] += 1
        self.add(own + fresh)
        return True

    def _prefix(self, job: Job) -> _Prefix:
        return job.request.prefix, self._whole_blocks(job.request.prefix_tokens)

    def _whole_blocks(self, tokens: int) -> int:
        return tokens // self._block * self._block

    def add(self, tokens: int) -> None:
        """Count further tokens. Never beyond the capacity."""
        self.used_tokens += tokens
        assert self.used_tokens <= self.capacity_tokens, "the simulated KV cache overflows"
        self.peak_tokens = max(self.peak_tokens, self.used_tokens)

    def keep_prefix(self, job: Job) -> None:
        """`job` has computed its prompt: from now on others share the prefix it began with."""
        prefix = self._prefix(job)
        if prefix[0] is None or not prefix[1] or prefix in self._users:
            return
        self._users[prefix] = 1
        job.own_tokens -= prefix[1]
        job.holds_prefix = True

    def release(self, job: Job) -> None:
        """`job` is done or preempted."""
        self.used_tokens -= job.own_tokens
        if job.holds_prefix:
            prefix = self._prefix(job)
            self._users[prefix] -= 1
            if not self._users[prefix]:
                self.used_tokens -= prefix[1]
        job.own_tokens, job.holds_prefix = 0, False
