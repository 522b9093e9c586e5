"""What each setting is worth: Bayesian linear regression on settings and pairs of settings.

One model for all responses (quality, latency, cost), fitted to blocks. Within a block all
candidates ran on the same cases in the same round, so block means are subtracted: the difficulty of
cases and a drift between rounds fall out. Standard library only: the matrices are small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import log, sqrt
from random import Random
from statistics import fmean
from typing import Final, TypeAlias

from weft.optimisation.candidates import Candidate, KnobOptions, Option

ResponseBlock: TypeAlias = Mapping[Candidate, Sequence[Sequence[float]]]
"""Of each candidate of a block: a sequence for each response, with a value for each case."""
Vector: TypeAlias = list[float]
Weights: TypeAlias = tuple[Vector, ...]
"""A weight for each feature, for each response, in the response's own unit."""

_PRIOR: Final = 0.3
"""Prior deviation of the weight of a setting, in deviations of a case's noise."""
_PAIR_PRIORS: Final = (0.07, 0.25)
"""The same for pairs of settings: the one under which the data are likeliest is used."""
_MOST_FEATURES: Final = 110


class FactorSpace:
    """Features of candidates: the settings that are not the baseline's, and pairs of them.

    Pairs of knobs are left out, the last first, where there were too many features for them.
    """

    def __init__(self, knobs: KnobOptions, baseline: Candidate) -> None:
        default = dict(baseline.settings)
        own = {name: [each for each in knobs[name] if each != default[name]] for name in knobs}
        self.knobs, self.baseline = knobs, baseline
        self.mains = {
            (name, option): at
            for at, (name, option) in enumerate(
                (name, option) for name, options in own.items() for option in options
            )
        }
        self.pairs: dict[tuple[int, int], int] = {}
        for one, other in combinations(own, 2):
            wanted = [
                (self.mains[one, a], self.mains[other, b]) for a in own[one] for b in own[other]
            ]
            if self.size + len(wanted) <= _MOST_FEATURES:
                self.pairs.update({pair: self.size + at for at, pair in enumerate(wanted)})

    @property
    def size(self) -> int:
        """The number of features."""
        return len(self.mains) + len(self.pairs)

    def features(self, candidate: Candidate) -> list[int]:
        """Which features the candidate has; the baseline has none."""
        active = [self.mains[edit] for edit in candidate.edits(self.baseline).items()]
        active.sort()
        found = [self.pairs[pair] for pair in combinations(active, 2) if pair in self.pairs]
        return active + found

    def candidate(self, settings: Mapping[str, Option]) -> Candidate:
        """The candidate of these settings, the others as in the baseline."""
        return Candidate.of(dict(self.baseline.settings) | dict(settings))


@dataclass(frozen=True)
class FactorModel:
    """The posterior of the weights: their means, and the precision that all responses share.

    A candidate's predicted change against the baseline is the sum of the weights of its features.
    """

    space: FactorSpace
    means: Weights
    lower: list[Vector]
    scales: Vector

    @classmethod
    def fit(cls, space: FactorSpace, blocks: Sequence[ResponseBlock]) -> FactorModel:
        """Fit to what was measured; a response without noise gets no weights."""
        size, responses = space.size, _responses(blocks)
        scales = [_noise(blocks, at) for at in range(responses)]
        data = [[0.0] * size for _ in range(size)]
        right = [[0.0] * size for _ in range(responses)]
        for block in blocks:
            _add(block, space, data, right, scales)
        lower = max(
            (_posterior(data, len(space.mains), pair_prior) for pair_prior in _PAIR_PRIORS),
            key=lambda each: each.evidence(right[0]),
        ).lower
        means = tuple(
            [scale * each for each in _solve(lower, row)]
            for scale, row in zip(scales, right, strict=True)
        )
        return cls(space, means, lower, scales)

    def change(self, candidate: Candidate, response: int = 0) -> float:
        """The expected change of a response against the baseline."""
        weights = self.means[response]
        return sum(weights[at] for at in self.space.features(candidate))

    def deviation(self, candidate: Candidate, response: int = 0) -> float:
        """The posterior standard deviation of `change`."""
        active = [0.0] * self.space.size
        for at in self.space.features(candidate):
            active[at] = 1.0
        half = _forward(self.lower, active)
        return self.scales[response] * sqrt(sum(each * each for each in half))

    def draw(self, random: Random) -> Weights:
        """Weights drawn from the posterior, for Thompson sampling."""
        drawn = []
        for mean, scale in zip(self.means, self.scales, strict=True):
            noise = _backward(self.lower, [random.gauss(0, scale) for _ in mean])
            drawn.append([a + b for a, b in zip(mean, noise, strict=True)])
        return tuple(drawn)

    @cached_property
    def strongest(self) -> list[tuple[str, object]]:
        """Settings by the size of their own expected effect on the first response."""
        return sorted(
            self.space.mains, key=lambda main: -abs(self.means[0][self.space.mains[main]])
        )


@dataclass(frozen=True, slots=True)
class _Posterior:
    lower: list[Vector]
    log_prior: float

    def evidence(self, right: Sequence[float]) -> float:
        """Log marginal likelihood of the first response, up to a constant."""
        half = _forward(self.lower, right)
        determinant = sum(log(row[at]) for at, row in enumerate(self.lower))
        return sum(each * each for each in half) / 2 - determinant + self.log_prior


def _posterior(data: Sequence[Vector], mains: int, pair_prior: float) -> _Posterior:
    priors = [_PRIOR if at < mains else pair_prior for at in range(len(data))]
    precision = [list(row) for row in data]
    for at, prior in enumerate(priors):
        precision[at][at] += 1 / prior**2
    return _Posterior(_cholesky(precision), -sum(map(log, priors)))


def _responses(blocks: Sequence[ResponseBlock]) -> int:
    return next((len(rows) for block in blocks for rows in block.values()), 0)


def _noise(blocks: Sequence[ResponseBlock], response: int) -> float:
    """The deviation of a case's value after the means of its case and of its candidate.

    Where a response has none (a price, say), a thousandth of what candidates differ by.
    """
    total, freedom, spread = 0.0, 0, 0.0
    for block in blocks:
        rows = [values[response] for values in block.values()]
        columns = [fmean(column) for column in zip(*rows, strict=True)]
        overall = fmean(columns)
        for row in rows:
            own = fmean(row) - overall
            spread = max(spread, abs(own))
            total += sum((a - b - own) ** 2 for a, b in zip(row, columns, strict=True))
        freedom += (len(rows) - 1) * (len(columns) - 1)
    return max(sqrt(total / freedom) if freedom else 0.0, spread / 1_000)


def _add(
    block: ResponseBlock,
    space: FactorSpace,
    precision: list[Vector],
    right: list[Vector],
    scales: Sequence[float],
) -> None:
    """Add a block's candidates, centred at the block's mean, to the normal equations."""
    rows = {each: space.features(each) for each in block}
    cases = len(next(iter(block.values()))[0])
    centre = [0.0] * space.size
    for features in rows.values():
        for at in features:
            centre[at] += 1 / len(rows)
    dense = []
    for features in rows.values():
        row = [-each for each in centre]
        for at in features:
            row[at] += 1
        dense.append(row)
    used = [at for at, each in enumerate(centre) if 0 < each < 1 - 1e-12]
    for one in used:
        target = precision[one]
        for other in used:
            target[other] += cases * sum(row[one] * row[other] for row in dense)
    for response, scale in enumerate(scales):
        if not scale:
            continue
        means = [fmean(values[response]) for values in block.values()]
        overall = fmean(means)
        for at in used:
            told = sum(row[at] * (mean - overall) for row, mean in zip(dense, means, strict=True))
            right[response][at] += cases * told / scale


def _cholesky(matrix: list[Vector]) -> list[Vector]:
    """The lower triangle L of L L' = matrix, which is symmetric and positive definite."""
    lower: list[Vector] = []
    for at, row in enumerate(matrix):
        own: Vector = []
        for other in range(at):
            known = lower[other]
            dot = sum(map(float.__mul__, own, known))
            own.append((row[other] - dot) / known[other])
        own.append(sqrt(row[at] - sum(each * each for each in own)))
        lower.append(own)
    return lower


def _forward(lower: list[Vector], right: Sequence[float]) -> Vector:
    found: Vector = []
    for row, each in zip(lower, right, strict=True):
        found.append((each - sum(map(float.__mul__, row, found))) / row[len(found)])
    return found


def _backward(lower: list[Vector], right: Sequence[float]) -> Vector:
    found = list(right)
    for at in range(len(found) - 1, -1, -1):
        found[at] /= lower[at][at]
        for other in range(at):
            found[other] -= lower[at][other] * found[at]
    return found


def _solve(lower: list[Vector], right: Sequence[float]) -> Vector:
    return _backward(lower, _forward(lower, right))
