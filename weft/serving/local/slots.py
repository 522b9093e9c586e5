"""Which row of the cache a request gets, and whose prompt prefix it can take over.

Knows token ids and slot numbers; holds no tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Slot:
    """One row of the cache. `tokens` are those whose keys and values it holds, from position 0."""

    number: int
    tokens: list[int] = field(default_factory=list)
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """A slot for a prompt, the slot whose prefix it takes over, and how many tokens of it."""

    slot: Slot
    source: Slot
    reused: int


class Slots:
    """At most `limit` slots, made as they are needed. A free slot keeps its tokens for reuse."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._slots: list[Slot] = []

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def free(self) -> int:
        """How many more requests can be taken on."""
        return self._limit - sum(slot.busy for slot in self._slots)

    def claim(self, prompt: Sequence[int]) -> Claim:
        """A slot for `prompt`; its `tokens` are then the reused ones.

        The last prompt token is never reused: its logits are wanted. At least one slot must be
        free. A free slot that holds the longest common prefix is taken as it is; otherwise the
        caller copies the columns of `source`.
        """
        best, reused = self._longest(prompt)
        slot = best if best is not None and not best.busy else self._unused()
        claim = Claim(slot, best or slot, reused)
        slot.tokens = list(prompt[:reused])
        slot.busy = True
        return claim

    def reusable(self, prompt: Sequence[int]) -> int:
        """How many tokens of `prompt` a claim would find."""
        return self._longest(prompt)[1]

    def _longest(self, prompt: Sequence[int]) -> tuple[Slot | None, int]:
        best, reused = None, 0
        for slot in self._slots:
            shared = min(common_prefix(slot.tokens, prompt), len(prompt) - 1)
            if shared > reused or (shared == reused > 0 and not slot.busy):
                best, reused = slot, shared
        return best, reused

    def _unused(self) -> Slot:
        free = [slot for slot in self._slots if not slot.busy]
        if free:
            return min(free, key=lambda slot: len(slot.tokens))
        assert len(self._slots) < self._limit
        self._slots.append(Slot(len(self._slots)))
        return self._slots[-1]


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """How many leading tokens two sequences share."""
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return index
    return min(len(left), len(right))
