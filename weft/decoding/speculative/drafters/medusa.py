"""Medusa (arXiv 2401.10774): heads on the target's last hidden state guess several tokens at once.

The target's passes are all it needs: a draft takes one small step for all sequences together.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from weft.decoding.speculative.accept.lossy import LossyAcceptor
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Seen
from weft.decoding.speculative.drafters.place import Place
from weft.decoding.speculative.heads.medusa import MedusaHeads
from weft.decoding.speculative.heads.rank_tree import RankTree
from weft.decoding.speculative.heads.vocabulary_rows import VocabularyRows
from weft.decoding.speculative.lengths import Always, Lengths
from weft.decoding.speculative.method import Ask
from weft.decoding.speculative.tree import DraftTree
from weft.decoding.speculative.walk import Acceptor


class MedusaDrafter:
    """Implements `Watching`: keeps the hidden state of the last token that was read."""

    def __init__(self, method: MedusaMethod) -> None:
        self.name = method.name
        self.taps = method.taps
        self.state: torch.Tensor | None = None
        self.place = Place()
        self._method = method

    def see(self, seen: Seen) -> None:
        self.state = seen.hidden[self.taps[0]][-1]
        self.place.see(seen)

    def extend(self, tokens: Sequence[int]) -> None:
        self.place.extend(tokens)

    def propose(self, most: int) -> DraftTree:
        [draft] = self._method.propose([(self, most)])
        return draft.tree


class MedusaMethod:
    """Implements `Method`. `tree` is filled with the guesses of `heads`, read by `rows`."""

    def __init__(
        self,
        name: str,
        heads: MedusaHeads,
        rows: VocabularyRows,
        tree: RankTree,
        tap: int,
        acceptor: Acceptor | LossyAcceptor,
    ) -> None:
        self.name = name
        self.taps = (tap,)
        self.acceptor = acceptor
        self._heads = heads
        self._rows = rows
        self._tree = tree
        self._guesses = 1 + max(tree.ranks, default=0)

    def lengths(self) -> Lengths:
        return Always(len(self._tree))

    def begin(self) -> MedusaDrafter:
        return MedusaDrafter(self)

    def propose(self, asks: Sequence[Ask]) -> list[Draft]:
        """One step of the heads for all of them."""
        ready = [
            (at, drafter, most)
            for at, (drafter, most) in enumerate(asks)
            if isinstance(drafter, MedusaDrafter) and drafter.state is not None and most > 0
        ]
        drafts = [Draft(source=self.name)] * len(asks)
        if not ready:
            return drafts
        guesses = self._guessed([drafter.state for _, drafter, _ in ready])
        for (at, drafter, most), heads in zip(ready, guesses, strict=True):
            tree, _ = self._tree.first(most).filled(heads[drafter.place.forced :])
            drafts[at] = Draft(tree, source=self.name)
        return drafts

    def end(self, drafter: object) -> None:
        """A drafter holds no more than a state."""

    def close(self) -> None:
        """Holds nothing."""

    def _guessed(self, states: Sequence[torch.Tensor]) -> list[list[list[int]]]:
        """[drafters][heads][ranks]: ids, the likeliest first."""
        with torch.inference_mode():
            logits = self._rows(self._heads(torch.stack(states).float()))
            best = logits.topk(min(self._guesses, logits.shape[-1]), dim=-1).indices
            ids: list[list[list[int]]] = self._rows.ids[best].transpose(0, 1).tolist()
            return ids
