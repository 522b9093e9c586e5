"""The rows of the KV cache: which one a request gets, and what it can reuse from others.

Works on token ids and slot numbers; holds no tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft.decoding.network.visibility import Placement

ORDINARY = Placement()


@dataclass(slots=True)
class Slot:
    """One row of the cache.

    `tokens` are those whose keys and values are in it, by column, except for the columns `missing`;
    `placement` has their positions. From column `front` on they have attended to tokens of other
    slots; None: none has. From column `prompt` on they were computed in another precision than
    prompts; None: none was. `moved`: the number of tokens written from `front` on and moved away.
    `names` identify the first tokens, as far as computed.
    """

    number: int
    tokens: list[int] = field(default_factory=list)
    busy: bool = False
    placement: Placement = ORDINARY
    missing: list[int] = field(default_factory=list)
    front: int | None = None
    prompt: int | None = None
    moved: int = 0
    names: list[int] = field(default_factory=list)

    @property
    def ordinary_tokens(self) -> int:
        """The number of leading tokens that are as in an ordinary sequence."""
        limits = (self.placement.ordinary_tokens, self.front, self.prompt, *self.missing[:1])
        return min([len(self.tokens), *(limit for limit in limits if limit is not None)])

    def unread(self, tokens: int) -> Sequence[int]:
        """The columns, ascending, that a sequence of `tokens` tokens still has to be read into."""
        rest = range(len(self.tokens), tokens - self.moved)
        return (*self.missing, *rest) if self.missing else rest

    def read(self, columns: Sequence[int], tokens: Sequence[int]) -> None:
        """Record that `tokens` have been read into their `columns`."""
        count = len(self.tokens)
        self.tokens.extend(t for c, t in zip(columns, tokens, strict=True) if c >= count)
        if self.missing:
            done = set(columns)
            self.missing = [column for column in self.missing if column not in done]

    def begin(self, tokens: Sequence[int], names: Sequence[int] = ()) -> None:
        """Take the slot for a new sequence, whose first `tokens` it has."""
        self.tokens, self.names = list(tokens), list(names[: len(tokens)])
        self.placement, self.missing, self.moved = ORDINARY, [], 0
        self.front = self.prompt = None
        self.busy = True

    def free(self) -> None:
        """Release the slot. What others can reuse stays."""
        if self.front is not None:
            del self.tokens[self.front :]
        self.front, self.moved, self.busy = None, 0, False


@dataclass(frozen=True, slots=True)
class SlotClaim:
    """A slot for a prompt, the slot whose prefix it reuses, and the length of that prefix."""

    slot: Slot
    source: Slot
    reused: int


class CacheSlots:
    """At most `limit` slots, made as needed. A free slot keeps its tokens for reuse."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._slots: list[Slot] = []

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def free(self) -> int:
        """The number of requests that can be added."""
        return self._limit - sum(slot.busy for slot in self._slots)

    def claim(self, prompt: Sequence[int]) -> SlotClaim:
        """Claim a slot for `prompt`; its `tokens` are then the reused ones.

        The last prompt token is never reused: its logits are needed. At least one slot must be
        free. A free slot with the longest common prefix is taken itself, unless another has less
        to lose; then the caller copies the columns of `source`.
        """
        best, reused = self._longest(prompt)
        slot = self._unused(best, reused)
        claim = SlotClaim(slot, best or slot, reused)
        slot.begin(prompt[:reused], claim.source.names)
        return claim

    def claim_empty(self) -> Slot:
        """Claim a slot without tokens. At least one must be free."""
        slot = self._unused()
        slot.begin(())
        return slot

    def reusable(self, prompt: Sequence[int]) -> int:
        """The number of tokens of `prompt` that a claim would reuse."""
        return self._longest(prompt)[1]

    def named(self) -> dict[int, tuple[int, int]]:
        """The slot and column of every token that another sequence can reuse, by its name."""
        found = {}
        for slot in self._slots:
            slot.names = slot.placement.names(slot.tokens[: slot.front], slot.names)
            missing = set(slot.missing)
            for column, name in enumerate(slot.names):
                if column not in missing:
                    found[name] = (slot.number, column)
        return found

    def _longest(self, prompt: Sequence[int]) -> tuple[Slot | None, int]:
        best, reused = None, 0
        for slot in self._slots:
            most = min(slot.ordinary_tokens, len(prompt) - 1)
            shared = min(common_prefix(slot.tokens, prompt), most)
            if shared > reused or (shared == reused > 0 and not slot.busy):
                best, reused = slot, shared
        return best, reused

    def _unused(self, best: Slot | None = None, kept: int = 0) -> Slot:
        """The free slot that loses the fewest tokens; `best` would keep `kept` of its own."""
        free = [slot for slot in self._slots if not slot.busy]
        if free:
            return min(free, key=lambda slot: len(slot.tokens) - kept * (slot is best))
        assert len(self._slots) < self._limit
        self._slots.append(Slot(len(self._slots)))
        return self._slots[-1]


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """The number of leading tokens that two sequences share."""
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return index
    return min(len(left), len(right))
