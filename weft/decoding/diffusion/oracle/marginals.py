"""Exact marginals of the uniform distribution over the answers that agree with a canvas.

Knows tables of answers only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.oracle import vocabulary as words

Table = NDArray[np.int16]


def laid(table: Table, length: int) -> Table:
    """[answers, length]: with terminators to fill the canvas, or cut to it."""
    if table.shape[1] >= length:
        return table[:, :length]
    ends = np.full((len(table), length - table.shape[1]), words.EOS, dtype=np.int16)
    return np.concatenate([table, ends], axis=1)


def agreeing(table: Table, ids: NDArray[np.int64], decided: NDArray[np.bool_]) -> Table:
    """The answers that hold `ids` [length] where `decided` [length]; all of them if none does.

    A canvas that no answer agrees with says nothing: the marginals become unconditional.
    """
    at = np.flatnonzero(decided)
    left = table[(table[:, at] == ids[at]).all(axis=1)]
    return left if len(left) else table


def log_marginals(table: Table, slots: NDArray[np.int64]) -> NDArray[np.float32]:
    """[slots, vocabulary]: the logarithm of how many answers hold a token there; -inf for none.

    Counts, not shares: equal counts stay exactly equal.
    """
    apart = words.SIZE * np.arange(len(slots))
    tokens = (table[:, slots] + apart).ravel()
    counts = np.bincount(tokens, minlength=words.SIZE * len(slots)).astype(np.float64)
    logs = np.full(len(counts), -np.inf)
    np.log(counts, where=counts > 0, out=logs)
    return logs.reshape(len(slots), words.SIZE).astype(np.float32)
