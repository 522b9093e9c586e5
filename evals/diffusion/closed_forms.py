"""What a step that writes slots independently costs, in closed form, if predictions are true.

`correlation` is what is lost (total correlation, ParallelBench, arXiv 2510.04767).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, log, perm

from weft.decoding.diffusion.oracle.closed_forms import ONE_STEP


def correlation(operation: str, n: int) -> float:
    """Nats between the joint law of an answer and the product of its marginals.

    Raises: `KeyError` for an operation without a closed form.
    """
    match operation:
        case "shuffle":
            return n * log(n) - log(factorial(n))
        case "replace_random":
            return (n - 1) * log(n / (n - 1))
        case "insert_random":
            # slot j holds item j, the one before it, or the new one
            laws = [(n - j, j, 1) for j in range(n + 1)]
            return sum(_entropy(law, n + 1) for law in laws) - log(n + 1)
        case "remove_random":
            return sum(_entropy((j + 1, n - j - 1), n) for j in range(n - 1)) - log(n)
        case "pair_match":
            return log(n)
        case "parity":
            return log(2)
    if ONE_STEP[operation](n) == 1.0:
        return 0.0
    raise KeyError(operation)


def shuffle_in_steps(sizes: Sequence[int]) -> float:
    """Validity of a shuffle that is written `sizes` slots at a time, in any order."""
    left, validity = sum(sizes), 1.0
    for size in sizes:
        validity *= perm(left, size) / left**size
        left -= size
    return validity


def replace_in_steps(sizes: Sequence[int]) -> float:
    """Validity of replace_random written `sizes` slots at a time, in an order blind to tokens."""
    left, validity, unplaced = sum(sizes), 0.0, 1.0
    for size in sizes:
        once = size / left * (1.0 - 1.0 / left) ** (size - 1)
        validity += unplaced * once  # all other slots are certain from here on
        unplaced *= (1.0 - 1.0 / left) ** size
        left -= size
    return validity


def _entropy(ways: Sequence[int], of: int) -> float:
    """Nats of a law in which each outcome has so many ways `of` all."""
    return -sum(count / of * log(count / of) for count in ways if count)
