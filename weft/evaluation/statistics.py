"""Paired tests and bootstrap intervals of evaluations."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the bounds of its confidence interval."""

    mean: float
    low: float
    high: float


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """The two-sided p of the exact McNemar test on discordant pairs (McNemar 1947)."""
    pairs, least = only_a + only_b, min(only_a, only_b)
    tail = sum(math.comb(pairs, count) for count in range(least + 1))
    return min(1.0, float(2 * tail / 2**pairs))


def sign_flip(differences: Sequence[float], *, seed: int = 0, draws: int = 10_000) -> float:
    """The two-sided p of a sign-flip permutation test of a mean difference of 0."""
    moved = [each for each in differences if each]
    random, observed = Random(seed), abs(sum(moved)) - 1e-12  # noqa: S311 - repeatable, no secret
    extreme = 0
    for _ in range(draws if moved else 0):
        signs = random.getrandbits(len(moved))
        total = sum(each if signs >> place & 1 else -each for place, each in enumerate(moved))
        extreme += abs(total) >= observed
    return (extreme + 1) / (draws + 1) if moved else 1.0


def bootstrap_mean(
    values: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    level: float = 0.95,
    seed: int = 0,
    draws: int = 2_000,
) -> Interval:
    """The mean with a percentile bootstrap interval; whole `groups` are drawn together."""
    if not values:
        return Interval(math.nan, math.nan, math.nan)
    mean = math.fsum(values) / len(values)
    clusters = [(math.fsum(part), len(part)) for part in _clusters(values, groups)]

    def drawn(parts: list[tuple[float, int]]) -> float:
        return sum(total for total, _ in parts) / sum(count for _, count in parts)

    return Interval(mean, *_bounds(clusters, drawn, level, seed, draws))


def bootstrap_quantile_difference(
    a: Sequence[float],
    b: Sequence[float],
    quantile: float,
    *,
    groups: Sequence[Hashable] | None = None,
    level: float = 0.95,
    seed: int = 0,
    draws: int = 2_000,
) -> Interval:
    """The difference `b - a` of a quantile on paired cases, with a bootstrap interval."""
    pairs = list(zip(a, b, strict=True))

    def difference(parts: list[list[tuple[float, float]]]) -> float:
        every = [pair for part in parts for pair in part]
        first, second = ([pair[side] for pair in every] for side in (0, 1))
        return _quantile(second, quantile) - _quantile(first, quantile)

    clusters = _clusters(pairs, groups)
    if not clusters:
        return Interval(math.nan, math.nan, math.nan)
    return Interval(difference(clusters), *_bounds(clusters, difference, level, seed, draws))


def _clusters(values: Sequence[T], groups: Sequence[Hashable] | None) -> list[list[T]]:
    found: dict[Hashable, list[T]] = {}
    for place, value in enumerate(values):
        found.setdefault(place if groups is None else groups[place], []).append(value)
    return list(found.values())


def _bounds(
    clusters: list[T], statistic: Callable[[list[T]], float], level: float, seed: int, draws: int
) -> tuple[float, float]:
    random, count = Random(seed), len(clusters)  # noqa: S311 - repeatable, no secret
    found = sorted(statistic(random.choices(clusters, k=count)) for _ in range(draws))
    return _quantile(found, (1 - level) / 2), _quantile(found, (1 + level) / 2)


def _quantile(values: Sequence[float], quantile: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(quantile * len(ordered)) - 1))]
