"""Typical acceptance (Medusa, arXiv 2401.10774, section 2.3.1): keeps what is not unlikely.

The text is no sample of the target's law any more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.speculative.chance import Chance
from weft.decoding.speculative.tree import ROOT, DraftTree
from weft.decoding.speculative.walk import LawAt, Walk


@dataclass(frozen=True, slots=True)
class Typical:
    """Implements `LossyAcceptor`. A token x is kept if p(x) > min(epsilon, delta * exp(-H(p))).

    H is the entropy of the target's law p, in nats. Of several such children the likeliest is
    followed. The token after them is drawn from the law, by the same chance as without a draft. A
    greedy law has no entropy and one token: then this is the greedy rule, and nothing is lost.

    Raises: `ValueError` for values out of 0..1.
    """

    epsilon: float = 0.09
    delta: float = 0.3

    def __post_init__(self) -> None:
        if not 0.0 <= self.epsilon <= 1.0 or not 0.0 <= self.delta <= 1.0:
            raise ValueError(f"no acceptance with {self}")

    def walk_lossy(self, tree: DraftTree, law_at: LawAt, chance: Chance, position: int) -> Walk:
        path: list[int] = []
        node, tried = ROOT, 0
        while True:
            law = law_at(node)
            children = tree.children(node)
            tried += len(children)
            least = min(self.epsilon, self.delta * float(np.exp(-_entropy(law))))
            kept = [child for child in children if law[tree.tokens[child]] > least]
            if not kept:
                return Walk(tuple(path), chance.token(law, position + len(path)), tried)
            node = max(kept, key=lambda child: float(law[tree.tokens[child]]))
            path.append(node)


def _entropy(law: NDArray[np.float64]) -> float:
    """In nats."""
    some = law[law > 0.0]
    return float(-(some * np.log(some)).sum())
