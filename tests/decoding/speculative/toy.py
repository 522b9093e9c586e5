"""A target whose laws are drawn from the text before, and drafters of every kind."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative.acceptance import AcceptedPath, DistributionAt
from weft.decoding.speculative.draft import ROOT, DraftProposal, DraftTree
from weft.decoding.speculative.drafter import TargetOutputs

WORDS = 5


class ToyTarget:
    """Keeps the whole text, so that a wrong commit changes everything after it."""

    def __init__(self, prompt: Sequence[int], shaping: SamplingParams) -> None:
        self.text = list(prompt)
        self.passes = 0
        self._shaping = shaping
        self._tree = DraftTree()

    def law(self, text: Sequence[int]) -> NDArray[np.float64]:
        logits = np.random.default_rng([*text, 11]).normal(size=WORDS) * 2
        return self._shaping.distribution(logits.astype(np.float32))

    def verify(self, draft: DraftProposal, taps: tuple[int, ...] = ()) -> DistributionAt:
        assert not taps
        self.passes += 1
        self._tree = tree = draft.tree
        seen = tree.ancestors

        def law_at(node: int) -> NDArray[np.float64]:
            above = [i for i in range(len(tree)) if seen[node + 1, i + 1]]
            return self.law([*self.text, *(tree.tokens[i] for i in above)])

        return law_at

    def commit(self, walk: AcceptedPath) -> TargetOutputs:
        read = (self.text[-1], *(self._tree.tokens[node] for node in walk.path))
        self.text += walk.tokens(self._tree)
        return TargetOutputs(read, walk=walk)


class Wild:
    """Drafts random trees."""

    name = "wild"

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def extend(self, tokens: Sequence[int]) -> None:
        pass

    def propose(self, most: int) -> DraftTree:
        tokens: list[int] = []
        parents: list[int] = []
        for node in range(self._random.randint(0, most)):
            parent = self._random.randint(ROOT, node - 1)
            taken = {t for t, p in zip(tokens, parents, strict=True) if p == parent}
            free = [token for token in range(WORDS) if token not in taken]
            if free:
                tokens.append(self._random.choice(free))
                parents.append(parent)
            else:
                break
        return DraftTree(tuple(tokens), tuple(parents))


class Told:
    """Drafts the true text, or always something else."""

    name = "told"

    def __init__(self, text: Sequence[int], *, wrong: bool = False) -> None:
        self._text = list(text)
        self._at = 0
        self._wrong = wrong

    def extend(self, tokens: Sequence[int]) -> None:
        self._at += len(tokens)

    def propose(self, most: int) -> DraftTree:
        true = self._text[self._at : self._at + most]
        return DraftTree.chain([(token + self._wrong) % WORDS for token in true])
