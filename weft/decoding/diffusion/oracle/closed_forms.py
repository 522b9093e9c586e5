"""What a step that writes slots independently costs, in closed form, if predictions are true.

`correlation` is what is lost (total correlation, ParallelBench, arXiv 2510.04767); `one_step` is
how often the answer is valid all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import factorial, log, perm, prod
from typing import Final


def _certain(_n: int) -> float:
    return 1.0


def _shuffle(n: int) -> float:
    return float(factorial(n) / n**n)


def _replace(n: int) -> float:
    """One slot draws the new item, all others do not."""
    return (1.0 - 1.0 / n) ** (n - 1)


def _insert(n: int) -> float:
    """Summed over the gap k: slots before it draw their own item, those after it the one before."""
    ways = sum(perm(n, k) * perm(n, n - k) for k in range(n + 1))
    return float(ways / (n + 1) ** (n + 1))


def _remove(n: int) -> float:
    """Summed over the item k that is gone: slot j holds its own item with probability 1-(j+1)/n."""
    before = [prod((n - 1 - j) / n for j in range(k)) for k in range(n)]
    after = [prod((j + 1) / n for j in range(k, n - 1)) for k in range(n)]
    return sum(b * a for b, a in zip(before, after, strict=True))


def _match(n: int) -> float:
    return 1.0 / n


def _parity(_n: int) -> float:
    return 0.5


ONE_STEP: Final[Mapping[str, Callable[[int], float]]] = {
    "copy": _certain,
    "reverse": _certain,
    "sort": _certain,
    "replace_index": _certain,
    "remove_index": _certain,
    "insert_index": _certain,
    "choose_any": _certain,
    "shuffle": _shuffle,
    "replace_random": _replace,
    "insert_random": _insert,
    "remove_random": _remove,
    "pair_match": _match,
    "parity": _parity,
}
"""Validity of an answer to a question of n items that is written in one step, by operation."""


def one_step(operation: str, n: int) -> float:
    """Raises: `KeyError` for an operation without a closed form; `independent` counts those."""
    return ONE_STEP[operation](n)


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
