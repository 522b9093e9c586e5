"""What other requests wrote: siblings of a program, earlier runs of a node. Bounded, oldest out."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from weft.decoding.speculative.drafters.suffix.trie import Trie


class Shared:
    """Texts of at most `nodes` trie nodes together; the oldest are forgotten first.

    One text is cut to its last `longest` tokens. Use it from one thread.
    """

    def __init__(self, depth: int = 24, nodes: int = 500_000, longest: int = 4096) -> None:
        self.trie = Trie(depth)
        self._most = nodes
        self._longest = longest
        self._texts: deque[tuple[int, ...]] = deque()

    def __len__(self) -> int:
        return len(self._texts)

    def remember(self, text: Sequence[int]) -> None:
        """Add what a request wrote, once it has ended."""
        kept = tuple(text[-self._longest :])
        self._texts.append(kept)
        self.trie.add(kept)
        while self.trie.nodes > self._most:
            self.trie.remove(self._texts.popleft())
