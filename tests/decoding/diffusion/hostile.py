"""A model that changes its mind in every pass, to make policies go round in circles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.query import Query

VOCABULARY, KEEP, DELETE, INSERT, END, MASK = 10, 5, 6, 7, 8, 9
TRAITS = ModelTraits(VOCABULARY, MASK, frozenset({END}))
NOISE = ModelTraits(VOCABULARY, None, frozenset({END}))


@dataclass
class Hostile:
    """Logits are 0, or one of `levels`, by chance, new at every pass."""

    seed: int
    levels: tuple[float, ...] = (1.0, 5.0, 30.0)
    traits: ModelTraits = TRAITS
    passes: int = 0

    def forward(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        self.passes += 1
        return [self._logits(query) for query in queries]

    def forget(self, row: int) -> None:
        """Nothing is kept."""

    def _logits(self, query: Query) -> NDArray[np.float32]:
        slots = [*query.wanted, *query.shadows]
        logits = np.zeros((len(slots), VOCABULARY), dtype=np.float32)
        for at, slot in enumerate(slots):
            random = np.random.default_rng([self.seed, self.passes, int(slot)])
            logits[at, random.integers(VOCABULARY)] = random.choice(self.levels)
        logits[:, sorted(self.traits.banned)] = -np.inf
        return logits
