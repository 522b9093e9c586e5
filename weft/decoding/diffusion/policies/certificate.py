"""How much writing slots together may differ from writing them one by one.

Knows predictions only. What it proves, it proves for a model whose predictions fit together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def gaps(
    doubt: NDArray[np.float64], entropy: NDArray[np.float64], always: int
) -> NDArray[np.float64]:
    """Bounds for the slot `always` with the first 0, 1, .. n of all n: [n + 1], ascending.

    `doubt` is 1 minus the probability of the likeliest token, `entropy` is in nats. The bound is
    on the total variation distance between the joint law of such a set and the product of the
    slots' own laws. It is the smallest of three:

    - the sum of the doubts: joint and product both give the likeliest tokens at least 1 minus it;
    - twice that sum without its largest term: both laws differ from that slot's own law beside the
      likeliest tokens of the others by no more than the others' doubts;
    - Pinsker's, of the relative entropy, which is at most the entropies' sum without the largest
      (entropy-bounded unmasking, Ben-Hamu et al. 2025).
    """
    union, without = _sums(doubt, always)
    excess = _sums(entropy, always)[1]
    pinsker = np.sqrt(np.maximum(excess, 0.0) / 2.0)
    bound: NDArray[np.float64] = np.minimum(np.minimum(union, 2.0 * without), pinsker)
    return bound


def _sums(
    terms: NDArray[np.float64], always: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each set: the sum of its terms, and that without the largest."""
    own = terms[always]
    others = np.concatenate([[0.0], terms])
    others[always + 1] = 0.0  # it is in all sets, and in none twice
    before = others.cumsum()
    return before + own, before + own - np.maximum(np.maximum.accumulate(others), own)
