"""Search rules of published optimisers, from their descriptions; none is the original code.

All edit the same knobs, run on the same cache by node, and have the same budget of fresh calls. At
the end each returns what its own rule says, out of what it has fully evaluated on the development
cases; where the goal keeps an objective, only of what keeps it there (the publications have no
constraints, so this favours them). None has a test: what is not the baseline is called better.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evals.optimise.bench import COMPONENTS, Bench, Reflector, random_candidate
from evals.optimise.planted import BASELINE, CANDIDATES, CASES, KNOBS, Array
from weft.optimisation.candidates import Candidate


class Spent(Exception):
    """The budget is used up."""


class Rival:
    """What the rules have in common: a budget, full evaluations, and the best of them."""

    def __init__(self, bench: Bench, q: float, budget: int, seed: int) -> None:
        self.bench, self.budget = bench, budget
        self.random = np.random.default_rng((seed, 3))
        self.reflector = Reflector(bench, q, np.random.default_rng((seed, 4)))
        self.full: dict[Candidate, Array] = {}
        self.calls = 0

    def metric(self, candidate: Candidate, cases: range | list[int]) -> Array:
        """The metric of each case: the score; minus seconds where latency is the goal."""
        if self.bench.calls + self.bench.needed(candidate, cases).sum() > self.budget:
            raise Spent
        scores, _ = self.bench.scores(candidate, cases)
        if self.bench.model.planted.goal.improve.name == "quality":
            return scores
        return scores - self.bench.model.seconds(candidate)[list(cases)] / 4

    def evaluate(self, candidate: Candidate) -> float:
        """The mean metric on all development cases."""
        if candidate not in self.full:
            self.full[candidate] = self.metric(candidate, CASES.development)
        return float(self.full[candidate].mean())

    def reflect(self, parent: Candidate, component: str | None = None) -> Candidate:
        """One edit, for one call."""
        if self.bench.calls >= self.budget:
            raise Spent
        return self.reflector.edit(parent, component)

    def run(self) -> Candidate:
        """Search until the budget is spent; the best candidate."""
        try:
            self.evaluate(BASELINE)
            self.search()
        except Spent:
            pass
        return max(self.full, key=self.figure, default=BASELINE)

    def search(self) -> None:
        """The rule."""
        raise NotImplementedError

    def figure(self, candidate: Candidate) -> float:
        """The goal's improved figure on development cases; -inf where others are not kept."""
        goal, model, cases = (
            self.bench.model.planted.goal,
            self.bench.model,
            list(CASES.development),
        )

        def of(name: str, which: Candidate) -> float:
            if name == "quality":
                return float(self.bench.known(which, cases).mean())
            return -float(np.quantile(model.seconds(which)[cases], 0.95))

        for each in goal.keep:
            base = of(each.name, BASELINE)
            margin = each.margin * (1.0 if each.name == "quality" else abs(base))
            if of(each.name, candidate) < base - margin:
                return float("-inf")
        return of(goal.improve.name, candidate)


class RandomSearch(Rival):
    """Random candidates, each on all development cases."""

    def search(self) -> None:
        while len(self.full) < len(CANDIDATES):
            self.evaluate(random_candidate(self.random))


class Exhaustive(Rival):
    """All candidates, in random order, each on all development cases."""

    def search(self) -> None:
        for at in self.random.permutation(len(CANDIDATES)):
            self.evaluate(CANDIDATES[int(at)])


class GepaRules(Rival):
    """GEPA (arXiv 2507.19457): Pareto parents by case, reflection on three cases, merge."""

    _BATCH: Final = 3
    _MERGES: Final = 5
    _STEPS: Final = 2_000
    _front: Array | None = None

    def search(self) -> None:
        parents: dict[Candidate, tuple[Candidate, ...]] = {BASELINE: ()}
        step, merges, order = 0, 0, list(CASES.train)
        while step < self._STEPS:
            if step * self._BATCH % len(order) == 0:
                self.random.shuffle(order)
            at = step * self._BATCH % len(order)
            batch, step = order[at : at + self._BATCH], step + 1
            parent = self._parent()
            old = self.metric(parent, batch)
            if self.bench.model.planted.goal.improve.name == "quality" and old.min() >= 1:
                continue
            child = self.reflect(parent, COMPONENTS[step % len(COMPONENTS)])
            if child in self.full or self.metric(child, batch).sum() <= old.sum():
                continue
            self.evaluate(child)
            parents[child] = (parent,)
            if merges < self._MERGES and len(self.full) > 2:
                merges += self._merge(parents)

    def _parent(self) -> Candidate:
        """With probability proportional to the cases on which it is among the best."""
        names = list(self.full)
        if self._front is None or len(self._front) != len(names):
            scores = np.stack([self.full[each] for each in names])
            wins = scores >= scores.max(axis=0)
            counts, keep = wins.sum(axis=0), np.ones(len(names), dtype=bool)
            for at in np.argsort(scores.mean(axis=1), kind="stable"):
                if (counts[wins[at]] > 1).all():
                    keep[at], counts = False, counts - wins[at]
            chance = np.where(keep, wins.sum(axis=1), 0).astype(np.float64)
            self._front = chance / chance.sum()
        return names[int(self.random.choice(len(names), p=self._front))]

    def _merge(self, parents: dict[Candidate, tuple[Candidate, ...]]) -> int:
        one, other = self._parent(), self._parent()
        if one == other or BASELINE in (one, other):
            return 0
        a, b, root = dict(one.settings), dict(other.settings), dict(BASELINE.settings)
        better = a if self.full[one].mean() >= self.full[other].mean() else b
        made = {}
        for component in COMPONENTS:
            knobs = [knob for knob in KNOBS if knob.startswith(component)]
            changed = [each for each in (a, b) if any(each[k] != root[k] for k in knobs)]
            source = changed[0] if len(changed) == 1 else better
            made |= {knob: source[knob] for knob in knobs}
        merged = Candidate.of(made)
        if merged in self.full:
            return 0
        sample = [
            int(each) for each in self.random.choice(len(CASES.development), 5, replace=False)
        ]
        best = max(self.full[one][sample].sum(), self.full[other][sample].sum())
        if self.metric(merged, sample).sum() >= best:
            self.evaluate(merged)
            parents[merged] = (one, other)
        return 1


class MiproRules(Rival):
    """MIPROv2 (arXiv 2406.11695): TPE over the product of options, minibatches of 35, the best mean
    fully evaluated after every five trials. The proposals themselves cost six calls a predictor.
    """

    _BATCH: Final = 35
    _STARTUP: Final = 10
    _TRIALS: Final = 2_000

    def search(self) -> None:
        self.bench.calls += 6 * len(COMPONENTS)
        trials: list[tuple[int, float]] = []
        sums, counts = np.zeros(len(CANDIDATES)), np.zeros(len(CANDIDATES))
        while True:
            at = self._suggest(trials)
            batch = self.random.choice(len(CASES.development), self._BATCH, replace=False)
            score = float(self.metric(CANDIDATES[at], batch.tolist()).mean())
            trials.append((at, score))
            sums[at], counts[at] = sums[at] + score, counts[at] + 1
            if len(trials) % 5 == 0:
                done = [each in self.full for each in CANDIDATES]
                means = np.where((counts == 0) | done, -np.inf, sums / np.maximum(counts, 1))
                if np.isfinite(means.max()):
                    self.evaluate(CANDIDATES[int(means.argmax())])
            if len(self.full) == len(CANDIDATES) or len(trials) >= self._TRIALS:
                return

    def _suggest(self, trials: list[tuple[int, float]]) -> int:
        if len(trials) < self._STARTUP:
            return int(self.random.integers(len(CANDIDATES)))
        scores = np.array([score for _, score in trials])
        ranked = np.array([at for at, _ in trials])[np.argsort(-scores, kind="stable")]
        good = min(25, int(np.ceil(0.1 * len(ranked))))
        above, below = (
            np.bincount(ranked[:good], minlength=len(CANDIDATES)),
            np.bincount(ranked[good:], minlength=len(CANDIDATES)),
        )
        drawn = self._sample(above)
        ratio = np.log(self._mixture(above)) - np.log(self._mixture(below))
        return int(drawn[ratio[drawn].argmax()])

    def _sample(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """24 draws from the mixture of kernels around the points and the prior."""
        density = self._mixture(points)
        return self.random.choice(len(CANDIDATES), size=24, p=density / density.sum())

    @staticmethod
    def _mixture(points: NDArray[np.int64]) -> Array:
        """The density of every candidate: a kernel around each point, and the uniform prior."""
        mixed = _KERNEL @ points + 1 / len(CANDIDATES)
        return np.asarray(mixed / (points.sum() + 1))


def _kernels() -> Array:
    """The kernel between any two candidates: each knob kept with 0.8, else drawn anew."""
    kernel = np.ones((len(CANDIDATES), len(CANDIDATES)))
    for at, (knob, options) in enumerate(sorted(KNOBS.items())):
        own = np.array([options.index(str(each.settings[at][1])) for each in CANDIDATES])
        assert CANDIDATES[0].settings[at][0] == knob
        kernel *= 0.2 / len(options) + 0.8 * (own[:, None] == own[None, :])
    return kernel


_KERNEL: Final = _kernels()


class AflowRules(Rival):
    """AFlow (arXiv 2410.10762): parents from the top by a softmax, one change, the whole set."""

    def search(self) -> None:
        tried: dict[Candidate, set[Candidate]] = {}
        while True:
            parent = self._select()
            child = self.reflect(parent)
            if child in tried.setdefault(parent, set()):
                if len(tried[parent]) >= sum(len(options) - 1 for options in KNOBS.values()):
                    child = self.reflect(child)
                else:
                    continue
            tried[parent].add(child)
            self.evaluate(child)

    def _select(self) -> Candidate:
        top = sorted(self.full, key=lambda each: -self.full[each].mean())[:3]
        names = list(dict.fromkeys([BASELINE, *top]))
        scores = np.array([100 * self.full[each].mean() for each in names])
        soft = np.exp(0.2 * (scores - scores.max()))
        chance = 0.3 / len(names) + 0.7 * soft / soft.sum()
        return names[int(self.random.choice(len(names), p=chance / chance.sum()))]


RIVALS: Final[dict[str, Callable[[Bench, float, int, int], Rival]]] = {
    "gepa_rules": GepaRules,
    "mipro_rules": MiproRules,
    "aflow_rules": AflowRules,
    "random": RandomSearch,
    "exhaustive": Exhaustive,
}
