"""Paired tests, bootstrap intervals and sample sizes for figures per case.

Everything here is a function of numbers and a seed: the same input gives the same result on every
machine. Standard library only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, comb, fsum, isfinite, sqrt
from operator import getitem
from random import Random
from statistics import NormalDist
from typing import Final

from weft.core.errors import InputError

_BLOCK: Final = 8
_EXACT: Final = 2 * _BLOCK


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure (`mean`: the estimate from all values) and the bounds of its interval."""

    mean: float
    low: float
    high: float


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Two-sided p of the exact McNemar test: cases that only a, and only b, gets right.

    Under the null each discordant case falls to either side with probability 1/2 (binomial test).
    Raises: `InputError` for a negative count.
    """
    if only_a < 0 or only_b < 0:
        raise InputError(f"counts of cases are at least 0, not {only_a} and {only_b}")
    total = only_a + only_b
    tail = sum(comb(total, each) for each in range(min(only_a, only_b) + 1))
    return min(1.0, 2 * tail / (1 << total))


def sign_flip(differences: Sequence[float], *, seed: int = 0, draws: int = 10_000) -> float:
    """Two-sided p of the paired permutation test: is the mean of the differences 0?

    Under the null the sign of each case's difference is arbitrary. All sign patterns are counted up
    to 16 differences that are not 0; beyond, `draws` random ones, and then p is at least
    1 / (draws + 1) (Phipson and Smyth 2010). Raises: `InputError` for values that are not finite.
    """
    told = [each for each in _finite(differences, "differences") if each]
    if not told:
        return 1.0
    observed = abs(fsum(told)) - 1e-9 * fsum(map(abs, told))  # equal sums differ by rounding
    tables = [_signed_sums(told[at : at + _BLOCK]) for at in range(0, len(told), _BLOCK)]
    if len(told) <= _EXACT:
        sums = [sum(parts) for parts in product(*tables)]
        return sum(abs(each) >= observed for each in sums) / len(sums)
    random, blocks = Random(seed), len(tables)  # noqa: S311
    tables[-1] *= (1 << _BLOCK) // len(tables[-1])  # so that a byte names a pattern of each block
    extreme = sum(
        abs(sum(map(getitem, tables, random.randbytes(blocks)))) >= observed for _ in range(draws)
    )
    return (extreme + 1) / (draws + 1)


def bootstrap_mean(
    values: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    level: float = 0.95,
    seed: int = 0,
    draws: int = 2_000,
) -> Interval:
    """Percentile bootstrap interval of the mean.

    `groups` names the cluster of each value (paraphrases of one question, say): whole clusters are
    drawn. Raises: `InputError` without values, or where `groups` has another length.
    """
    _finite(values, "values")
    clusters, count = _clusters(len(values), groups), len(values)
    random = Random(seed)  # noqa: S311
    if len(clusters) == count:
        means = [sum(random.choices(values, k=count)) / count for _ in range(draws)]
        return _interval(fsum(values) / count, means, level)
    parts = [(fsum(values[at] for at in cluster), len(cluster)) for cluster in clusters]
    means = []
    for _ in range(draws):
        drawn = random.choices(parts, k=len(parts))
        means.append(sum(part[0] for part in drawn) / sum(part[1] for part in drawn))
    return _interval(fsum(values) / count, means, level)


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
    """Percentile bootstrap interval of quantile(a) - quantile(b), drawn by case (or by group).

    `a[i]` and `b[i]` belong to one case. Raises: `InputError` for sequences of unequal length.
    """
    differences = list(_quantile_draws(a, b, quantile, groups, seed, draws))
    return _interval(quantile_of(a, quantile) - quantile_of(b, quantile), differences, level)


def bootstrap_quantile_p(
    a: Sequence[float],
    b: Sequence[float],
    quantile: float,
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
    draws: int = 2_000,
) -> float:
    """Two-sided bootstrap p of "the quantiles are equal", by inversion of the interval."""
    found = sorted(_quantile_draws(a, b, quantile, groups, seed, draws))
    below, above = bisect_right(found, 0.0), draws - bisect_left(found, 0.0)
    return min(1.0, 2 * (min(below, above) + 1) / (draws + 1))


def quantile_of(values: Sequence[float], quantile: float) -> float:
    """The quantile, linear between order statistics. Raises: `InputError` without values."""
    if not values or not 0 <= quantile <= 1:
        raise InputError("a quantile needs values, and a share from 0 to 1")
    ordered = sorted(values)
    place = quantile * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given: compare each with the level of all tests."""
    adjusted, least = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = least
    return adjusted


def cases_needed(
    difference: float, discordance: float, *, power: float = 0.8, level: float = 0.05
) -> int:
    """Cases with which McNemar's test finds a difference of two shares (Connor 1987).

    `discordance`: the share of cases on which the two differ, at least `difference`. Raises:
    `InputError` for shares that cannot be.
    """
    if not 0 < difference <= discordance <= 1:
        raise InputError(
            f"a difference of {difference} does not fit a discordance of {discordance}",
            hint="the discordance is at least the difference and at most 1",
        )
    normal = NormalDist()
    under_null = normal.inv_cdf(1 - level / 2) * sqrt(discordance)
    otherwise = normal.inv_cdf(power) * sqrt(discordance - difference**2)
    return max(1, ceil((under_null + otherwise) ** 2 / difference**2))


def detectable_difference(
    cases: int, discordance: float, power: float = 0.8, level: float = 0.05
) -> float:
    """The smallest difference that `cases` cases show with this power; at most `discordance`."""
    low, high = 0.0, discordance
    for _ in range(50):
        middle = (low + high) / 2
        enough = middle > 0 and cases_needed(middle, discordance, power=power, level=level) <= cases
        low, high = (low, middle) if enough else (middle, high)
    return high


def not_inferior(
    differences: Sequence[float],
    margin: float,
    *,
    groups: Sequence[Hashable] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> bool:
    """Whether the lower bound of the mean difference (new minus old) is above -margin."""
    return bootstrap_mean(differences, groups=groups, level=level, seed=seed).low > -margin


def _signed_sums(values: Sequence[float]) -> list[float]:
    """The sum under each pattern of signs, by the number whose bits say which are turned."""
    return [
        sum(-each if pattern >> at & 1 else each for at, each in enumerate(values))
        for pattern in range(1 << len(values))
    ]


def _quantile_draws(
    a: Sequence[float],
    b: Sequence[float],
    quantile: float,
    groups: Sequence[Hashable] | None,
    seed: int,
    draws: int,
) -> Iterator[float]:
    if len(a) != len(b):
        raise InputError(f"paired values are equally many, not {len(a)} and {len(b)}")
    _finite(a, "values")
    _finite(b, "values")
    clusters, random = _clusters(len(a), groups), Random(seed)  # noqa: S311
    for _ in range(draws):
        drawn = [at for cluster in random.choices(clusters, k=len(clusters)) for at in cluster]
        first, second = [a[at] for at in drawn], [b[at] for at in drawn]
        yield quantile_of(first, quantile) - quantile_of(second, quantile)


def _clusters(count: int, groups: Sequence[Hashable] | None) -> list[list[int]]:
    if groups is not None and len(groups) != count:
        raise InputError(f"{count} values have {len(groups)} groups", hint="one group for a value")
    if not count:
        raise InputError("an interval needs at least one value")
    found: dict[Hashable, list[int]] = {}
    for at, group in enumerate(range(count) if groups is None else groups):
        found.setdefault(group, []).append(at)
    return list(found.values())


def _interval(estimate: float, draws: Sequence[float], level: float) -> Interval:
    if not 0 < level < 1:
        raise InputError(f"a level lies between 0 and 1, not at {level}")
    outside = (1 - level) / 2
    return Interval(estimate, quantile_of(draws, outside), quantile_of(draws, 1 - outside))


def _finite(values: Iterable[float], what: str) -> Sequence[float]:
    found = list(values)
    if not all(map(isfinite, found)):
        raise InputError(f"{what} must be finite numbers")
    return found
