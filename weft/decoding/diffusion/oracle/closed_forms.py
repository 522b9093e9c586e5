"""How often an answer written in one step is valid, in closed form, if predictions are true.

Slots are drawn independently (ParallelBench, arXiv 2510.04767).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import factorial, perm, prod
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
