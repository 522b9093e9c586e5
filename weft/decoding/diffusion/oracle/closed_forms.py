"""Probability that an answer written in one step is valid, in closed form, with exact marginals.

Slots are drawn independently (ParallelBench, arXiv 2510.04767).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import factorial, perm, prod
from typing import Final


def _insert(n: int) -> float:
    """Summed over the gap k: slots before it draw their own item, those after it the one before."""
    valid = sum(perm(n, k) * perm(n, n - k) for k in range(n + 1))
    return float(valid / (n + 1) ** (n + 1))


def _remove(n: int) -> float:
    """Summed over the item k that is gone: slot j holds its own item with probability 1-(j+1)/n."""
    before = [prod((n - 1 - j) / n for j in range(k)) for k in range(n)]
    after = [prod((j + 1) / n for j in range(k, n - 1)) for k in range(n)]
    return sum(b * a for b, a in zip(before, after, strict=True))


_CERTAIN: Final = "copy reverse sort replace_index remove_index insert_index choose_any"
ONE_STEP: Final[Mapping[str, Callable[[int], float]]] = {
    **dict.fromkeys(_CERTAIN.split(), lambda _n: 1.0),
    "shuffle": lambda n: float(factorial(n) / n**n),
    "replace_random": lambda n: (1.0 - 1.0 / n) ** (n - 1),  # one slot draws the new item
    "insert_random": _insert,
    "remove_random": _remove,
    "pair_match": lambda n: 1.0 / n,
    "parity": lambda _n: 0.5,
}
"""Validity of an answer to a question of n items that is written in one step, by operation."""


def one_step(operation: str, n: int) -> float:
    """Raises: `KeyError` for an operation without a closed form; `independent` counts those."""
    return ONE_STEP[operation](n)
