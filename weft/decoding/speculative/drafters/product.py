"""The likeliest nodes where every level has a law of its own, whatever stands above.

So for drafters that guess all positions at once: heads, and rows that look ahead. Knows no model.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from weft.decoding.speculative.tree import ROOT, DraftTree


def likeliest(logits: NDArray[np.float32], most: int, width: int) -> DraftTree:
    """logits: [levels, vocabulary] of the first, second, .. token of the draft; of each level only
    the `width` likeliest tokens count. A node is as likely as all tokens down to it together.
    """
    levels = [_best(row, width) for row in logits]
    tokens: list[int] = []
    parents: list[int] = []
    waiting: list[tuple[float, int, int, int]] = []  # -log probability, level, parent, token

    def offer(parent: int, level: int, above: float) -> None:
        if level < len(levels):
            for token, log in levels[level]:
                heapq.heappush(waiting, (above - log, level, parent, token))

    offer(ROOT, 0, 0.0)
    while waiting and len(tokens) < most:
        negative, level, parent, token = heapq.heappop(waiting)
        tokens.append(token)
        parents.append(parent)
        offer(len(tokens) - 1, level + 1, negative)
    return DraftTree(tuple(tokens), tuple(parents))


def _best(logits: NDArray[np.float32], width: int) -> Sequence[tuple[int, float]]:
    """The likeliest tokens with their log probabilities."""
    shifted = logits.astype(np.float64) - float(logits.max())
    logs = shifted - np.log(np.exp(shifted).sum())
    few = np.argsort(-logs, kind="stable")[:width]
    return [(int(token), float(logs[token])) for token in few]
