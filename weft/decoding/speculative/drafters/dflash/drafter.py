"""The drafter of one sequence, and the method that drafts for all of them in one pass."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from weft.decoding.speculative.accept.match import Match
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Drafter, Seen
from weft.decoding.speculative.drafters.dflash.model import Ahead, DFlashModel
from weft.decoding.speculative.drafters.product import likeliest
from weft.decoding.speculative.lengths import Always, Lengths
from weft.decoding.speculative.method import Ask
from weft.decoding.speculative.tree import DraftTree


class DFlashDrafter:
    """Implements `Watching`. While the target has not shown what it read it drafts nothing.

    Positions count from the first token whose features were seen: only their differences matter.
    """

    name = "dflash"

    def __init__(self, method: DFlashMethod) -> None:
        self.taps = method.model.taps
        self._method = method
        self._memories = method.model.memories()
        self._end: list[int] = []
        self._read: list[int] = []
        self._features: list[torch.Tensor] = []

    def extend(self, tokens: Sequence[int]) -> None:
        self._end = [*self._end, *tokens[-2:]][-2:]

    def see(self, seen: Seen) -> None:
        if seen.tokens:
            self._read += seen.tokens
            self._features.append(torch.cat([seen.hidden[tap] for tap in self.taps], dim=-1))

    def propose(self, most: int) -> Draft:
        return self._method.propose([(self, most)])[0]

    def ahead(self) -> Ahead | None:
        """What to look ahead from, given once; None: nothing was read since, or the token before
        the last is still to be read (forced tokens come unread).
        """
        read = self._read
        if not read or self._end[:-1] != read[-1:]:
            return None
        features, self._features, self._read = torch.cat(self._features), [], []
        return Ahead(self._memories, features, self._end[-1])


class DFlashMethod:
    """Implements `Method`: trees of at most `nodes`, of the `width` likeliest tokens of each slot;
    a width of one is the published chain.
    """

    name = DFlashDrafter.name
    acceptor = Match()

    def __init__(self, model: DFlashModel, nodes: int, width: int) -> None:
        self.model = model
        self._nodes = nodes
        self._width = width
        self._tokens = model.vocabulary()

    @property
    def forwards(self) -> int:
        """Passes of the drafter's network so far; one for several sequences is one."""
        return self.model.forwards

    def lengths(self) -> Lengths:
        return Always(self._nodes)

    def begin(self) -> DFlashDrafter:
        return DFlashDrafter(self)

    def propose(self, asks: Sequence[Ask]) -> list[Draft]:
        """One pass for all that have something to look ahead from."""
        drafts = [Draft(source=self.name)] * len(asks)
        ready = []
        for at, (drafter, most) in enumerate(asks):
            assert isinstance(drafter, DFlashDrafter)
            ahead = drafter.ahead() if most > 0 else None
            if ahead is not None:
                ready.append((at, most, ahead))
        if not ready:
            return drafts
        looked = self.model.look([ahead for _, _, ahead in ready])
        for (at, most, _), logits in zip(ready, looked, strict=True):
            tree = likeliest(logits, most, self._width)
            tokens = tuple(int(self._tokens[token]) for token in tree.tokens)
            drafts[at] = Draft(DraftTree(tokens, tree.parents), source=self.name)
        return drafts

    def end(self, drafter: Drafter) -> None:
        """Its memories go with it."""

    def close(self) -> None:
        """Holds nothing but weights."""
