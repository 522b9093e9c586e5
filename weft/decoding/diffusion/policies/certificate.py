"""How much writing slots together may differ from writing them one by one.

Knows predictions only. What it proves, it proves for a model whose predictions fit together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def gaps(doubt: NDArray[np.float64], entropy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bounds for the first 1, 2, .. slots: [slots].

    `doubt` is 1 minus the probability of the likeliest token, `entropy` is in nats. The bound is
    on the total variation distance between the joint law of the slots and the product of their
    own laws, and is the smaller of two:

    - the sum of the doubts: joint and product both give the likeliest tokens at least 1 minus it;
    - Pinsker's, of the relative entropy, which is at most the entropies' sum without the largest
      (entropy-bounded unmasking, Ben-Hamu et al. 2025).
    """
    union = doubt.cumsum()
    excess = entropy.cumsum() - np.maximum.accumulate(entropy)
    bound: NDArray[np.float64] = np.minimum(union, np.sqrt(np.maximum(excess, 0.0) / 2.0))
    bound[:1] = 0.0  # one slot is written from its own law
    return bound
