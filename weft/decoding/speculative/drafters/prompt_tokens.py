"""Parallel prompt decoding (PPD, arXiv 2405.18628): trained prompt tokens below every candidate.

What the target says at those below the last accepted one are the next candidates. No model beside
the target, and no pass beside its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from weft.decoding.network.write import Write
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Seen
from weft.decoding.speculative.drafters.ahead import rows_below
from weft.decoding.speculative.drafters.place import Place
from weft.decoding.speculative.heads.prompt_tree import PromptTrees


class PromptTokens:
    """Implements `Watching`. `prompts` [distances, width] are what the target reads as them."""

    name = "ppd"
    taps: tuple[int, ...] = ()

    def __init__(self, prompts: torch.Tensor, trees: PromptTrees) -> None:
        self._prompts = prompts
        self._trees = trees
        self._guesses: list[list[int]] = []
        self._ranks = 1 + max((max(s.tree.ranks, default=0) for s in trees.states), default=0)
        self._place = Place()
        self._last: int | None = None

    def see(self, seen: Seen) -> None:
        self._place.see(seen)
        logits = torch.from_numpy(seen.aux[list(seen.under)])
        self._guesses = logits.topk(min(self._ranks, logits.shape[-1]), dim=-1).indices.tolist()

    def extend(self, tokens: Sequence[int]) -> None:
        self._place.extend(tokens)
        self._last = tokens[-1] if tokens else self._last

    def propose(self, most: int) -> Draft:
        if most < 1 or self._last is None:
            return Draft(source=self.name)
        guesses, self._guesses = self._guesses[self._place.forced :], []
        laid = self._trees.states[len(guesses)]
        tree, which = laid.tree.first(most).filled(guesses)
        counts = [laid.rows[0], *(laid.rows[1 + node] for node in which)]
        written = [row for count in counts for row in range(count)]
        first = 1 + len(tree)
        write = Write(
            0, tuple(range(first, first + len(written))), lambda _: self._prompts[written]
        )
        aux = rows_below(tree, counts, self._last, [write] if written else [])
        return Draft(tree, aux, self.name)
