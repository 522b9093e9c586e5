"""How much writing slots together may differ from writing them one by one.

Knows predictions only. What it proves, it proves for a model whose predictions fit together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def gaps(doubt: NDArray[np.float64], entropy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bounds for the first 1, 2, .. of some slots: [slots], ascending from 0.

    `doubt` is 1 minus the probability of the likeliest token, `entropy` is in nats. The bound is
    on the total variation distance between the joint law of such a set and the product of the
    slots' own laws. It is the smallest of three:

    - the sum of the doubts: joint and product both give the likeliest tokens at least 1 minus it;
    - twice that sum without its largest term: both laws differ from that slot's own law beside the
      likeliest tokens of the others by no more than the others' doubts;
    - Pinsker's, of the relative entropy, which is at most the entropies' sum without the largest
      (entropy-bounded unmasking, Ben-Hamu et al. 2025).
    """
    union, excess = doubt.cumsum(), entropy.cumsum() - np.maximum.accumulate(entropy)
    without = union - np.maximum.accumulate(doubt)
    pinsker = np.sqrt(np.maximum(excess, 0.0) / 2.0)
    bound: NDArray[np.float64] = np.minimum(np.minimum(union, 2.0 * without), pinsker)
    return np.maximum.accumulate(np.maximum(bound, 0.0))
