"""Which candidates to look at next: a balanced design first, then draws from the posterior."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from statistics import fmean
from typing import Final

from weft.optimisation.candidates import Candidate, Option
from weft.optimisation.factors import FactorModel, FactorSpace, Weights
from weft.optimisation.goal import GoalResponses

_DRAWS: Final = 16
_STARTS: Final = 2


def balanced_design(space: FactorSpace, count: int, random: Random) -> list[Candidate]:
    """`count` random candidates in which each option of a knob occurs equally often."""
    columns: dict[str, list[Option]] = {}
    for knob, options in space.knobs.items():
        own = list(options)
        random.shuffle(own)
        column = (own * (count // len(own) + 1))[:count]
        random.shuffle(column)
        columns[knob] = column
    rows = ({knob: column[at] for knob, column in columns.items()} for at in range(count))
    return list(dict.fromkeys(space.candidate(row) for row in rows))


@dataclass(frozen=True)
class Screening:
    """The best candidates by a fitted model, over the whole space, without the banned settings.

    `price` is what an edit must be worth to be in the expected best candidate; `allowed`: whether a
    candidate can be run.
    """

    model: FactorModel
    responses: GoalResponses
    banned: Collection[tuple[str, Option]] = ()
    price: float = 0.0
    allowed: Callable[[Candidate], bool] | None = None

    def utility(self, candidate: Candidate, weights: Weights | None = None) -> float:
        """The expected gain against the baseline, penalised for what is not kept.

        By the expected weights, a kept response is broken only where it is so by more than a
        deviation: an edit that changes no answer is not lost to the noise of its estimate.
        """
        features = self.model.space.features(candidate)
        if weights is not None:
            return self.responses.utility(features, weights)
        doubt = [
            self.model.deviation(candidate, at) for at, _ in enumerate(self.responses.goal.keep, 1)
        ]
        return self.responses.utility(features, self.model.means, doubt)

    def value(self, candidate: Candidate, weights: Weights | None = None) -> float:
        """The utility, less the price of the edits where weights are the expected ones."""
        if weights is not None:
            return self.utility(candidate, weights)
        return self.utility(candidate) - self.price * len(
            candidate.edits(self.model.space.baseline)
        )

    def best(self, starts: Sequence[Candidate], weights: Weights | None = None) -> Candidate:
        """The best candidate that single changes of settings reach from `starts`.

        By the expected weights each edit has a price; drawn weights explore, and have none.
        """
        found = [self._climb(self._allowed(start), weights) for start in starts]
        return max(found, key=lambda each: self.value(each, weights))

    def incumbent(self, random: Random, known: Iterable[Candidate] = ()) -> Candidate:
        """The best candidate by the expected weights; the baseline where nothing is better.

        The climbs start from the baseline, random candidates, and the best three of `known`.
        """
        ranked = sorted({*known}, key=lambda each: (-self.value(each), repr(each)))
        baseline = self.model.space.baseline
        starts = [baseline, *ranked[:3], *self._random_starts(random, _STARTS)]
        found = self.best(starts)
        return found if self.value(found) > 0 else baseline

    def draws(self, incumbent: Candidate, random: Random) -> tuple[float, list[Candidate]]:
        """The expected regret of stopping with `incumbent`, and what else may be best.

        Each draw from the posterior names its best candidate (Thompson sampling); the regret is by
        how much that is better, under the draw, on average. Most frequent candidates first.
        """
        regrets, named = [], Counter[Candidate]()
        for _ in range(_DRAWS):
            weights = self.model.draw(random)
            best = self.best([incumbent, *self._random_starts(random, _STARTS)], weights)
            regrets.append(self.utility(best, weights) - self.utility(incumbent, weights))
            named[best] += 1
        return fmean(regrets), [each for each, _ in named.most_common() if each != incumbent]

    def alternatives(self, candidate: Candidate, count: int) -> list[Candidate]:
        """The best of the candidates that differ from this one in one or two settings."""
        near = self._neighbours(candidate)
        wider = {other for one in near for other in self._neighbours(one)} | set(near)
        wider.discard(candidate)
        ranked = sorted(wider, key=lambda each: (-self.value(each), repr(each)))
        return list(islice(filter(self._runs, ranked), count))

    def most_valuable_edit(self, candidate: Candidate) -> tuple[str, Option] | None:
        """The edit without which the candidate loses most; None for the baseline."""
        worth = self.edit_worth(candidate)
        if not worth:
            return None
        knob = max(worth, key=worth.__getitem__)
        return knob, dict(candidate.settings)[knob]

    def edit_worth(self, candidate: Candidate) -> dict[str, float]:
        """By knob, what the candidate loses without its edit."""
        value = self.utility(candidate)
        edits = candidate.edits(self.model.space.baseline)
        return {knob: value - self.utility(self._without(candidate, knob)) for knob in edits}

    def _without(self, candidate: Candidate, knob: str) -> Candidate:
        return candidate.replace(knob, dict(self.model.space.baseline.settings)[knob])

    def _random_starts(self, random: Random, count: int) -> list[Candidate]:
        knobs = self.model.space.knobs
        return [
            self.model.space.candidate(
                {knob: random.choice(list(options)) for knob, options in knobs.items()}
            )
            for _ in range(count)
        ]

    def _allowed(self, candidate: Candidate) -> Candidate:
        baseline = dict(self.model.space.baseline.settings)
        for knob, option in candidate.settings:
            if (knob, option) in self.banned:
                candidate = candidate.replace(knob, baseline[knob])
        return candidate if self._runs(candidate) else self.model.space.baseline

    def _runs(self, candidate: Candidate) -> bool:
        return self.allowed is None or self.allowed(candidate)

    def _neighbours(self, candidate: Candidate) -> list[Candidate]:
        own = dict(candidate.settings)
        return [
            candidate.replace(knob, option)
            for knob, options in self.model.space.knobs.items()
            for option in options
            if option != own[knob] and (knob, option) not in self.banned
        ]

    def _climb(self, candidate: Candidate, weights: Weights | None) -> Candidate:
        value = self.value(candidate, weights)
        while True:
            scored = [(self.value(each, weights), each) for each in self._neighbours(candidate)]
            better = [pair for pair in scored if pair[0] > value + 1e-12]
            better.sort(key=lambda pair: -pair[0])
            step = next((pair for pair in better if self._runs(pair[1])), None)
            if step is None:
                return candidate
            value, candidate = step
