"""Sequential halving on identical cases, with earlier drops by a paired bound.

Every candidate of a round is measured on the same cases, and rounds are nested: the cases of
earlier rounds are kept and cost nothing again. Successive halving as of Karnin et al. 2013; the
empirical Bernstein bound as of Audibert et al. 2009.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, log, log2, sqrt
from statistics import fmean, pvariance
from typing import Literal, TypeAlias

from weft.core.errors import InputError
from weft.optimisation.candidates import Candidate, CaseId

Measure: TypeAlias = Callable[
    [Sequence[Candidate], Sequence[CaseId]], Awaitable[Mapping[Candidate, Sequence[float]]]
]
"""The oriented value of each new case, of each candidate; fewer cases where the budget ends."""


@dataclass(frozen=True, slots=True)
class RaceRound:
    """How many candidates start a round, and how many new cases each of them gets."""

    candidates: int
    cases: int


@dataclass(slots=True)
class RaceResult:
    """What is left, best first (the baseline is always there), and why the others are not."""

    survivors: list[Candidate]
    values: dict[Candidate, list[float]]
    dropped: dict[Candidate, tuple[int, Literal["bound", "half"]]] = field(default_factory=dict)
    evaluations: int = 0


def halving_rounds(candidates: int, evaluations: int) -> tuple[RaceRound, ...]:
    """ceil(log2 K) rounds of equal shares; each keeps the better half of the candidates."""
    if candidates < 1 or evaluations < candidates:
        raise InputError(f"{evaluations} evaluations cannot race {candidates} candidates")
    rounds, left, made = max(1, ceil(log2(candidates))), candidates, []
    for _ in range(rounds):
        made.append(RaceRound(left, max(1, evaluations // (rounds * left))))
        left = ceil(left / 2)
    return tuple(made)


def bernstein_bound(differences: Sequence[float], *, span: float, chance: float) -> float:
    """Upper bound of the mean of differences within a range of length `span`.

    It holds with probability 1 - `chance`. Raises: `InputError` without differences.
    """
    if not differences or not 0 < chance < 1:
        raise InputError("a bound needs differences, and a chance between 0 and 1")
    count, told = len(differences), log(3 / chance)
    spread = sqrt(2 * pvariance(differences) * told / count)
    return fmean(differences) + spread + 3 * span * told / count


async def race(
    baseline: Candidate,
    candidates: Sequence[Candidate],
    cases: Sequence[CaseId],
    measure: Measure,
    *,
    evaluations: int,
    span: float = 2.0,
    alpha: float = 0.05,
) -> RaceResult:
    """Race `candidates` beside `baseline`, which is measured throughout and never dropped.

    A candidate that is worse than the best by a paired bound at alpha / (K * rounds) leaves before
    half of the others would. `span` is the length of the range of paired differences. The race
    ends with one candidate, with the cases, or when `measure` gives no more values.
    """
    alive = [each for each in dict.fromkeys(candidates) if each != baseline]
    result = RaceResult([baseline], {each: [] for each in (baseline, *alive)})
    if not alive:
        return result
    rounds, at = halving_rounds(len(alive), evaluations), 0
    chance = alpha / (len(alive) * len(rounds))
    for number, planned in enumerate(rounds, 1):
        batch = cases[at : at + planned.cases]
        found = await measure([baseline, *alive], batch) if batch else {}
        for candidate, values in found.items():
            result.values[candidate].extend(values)
            result.evaluations += len(values)
        at += len(batch)
        if not found or not result.values[baseline]:
            break
        alive = _survivors(alive, number, planned, result, span=span, chance=chance)
    result.survivors = _ranked([baseline, *alive], result.values)
    return result


def _survivors(
    alive: list[Candidate],
    number: int,
    planned: RaceRound,
    result: RaceResult,
    *,
    span: float,
    chance: float,
) -> list[Candidate]:
    ranked = _ranked(alive, result.values)
    best, kept = result.values[ranked[0]], [ranked[0]]
    for candidate in ranked[1:]:
        paired = [a - b for a, b in zip(result.values[candidate], best, strict=True)]
        if bernstein_bound(paired, span=span, chance=chance) < 0:
            result.dropped[candidate] = (number, "bound")
        else:
            kept.append(candidate)
    half = ceil(planned.candidates / 2)
    result.dropped.update(dict.fromkeys(kept[half:], (number, "half")))
    return kept[:half]


def _ranked(
    candidates: Sequence[Candidate], values: Mapping[Candidate, Sequence[float]]
) -> list[Candidate]:
    """Best mean first; earlier first among equals, so that the baseline wins a tie."""
    return sorted(candidates, key=lambda each: -fmean(values[each] or [0.0]))
