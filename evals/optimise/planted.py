"""Programs with a planted optimum: what a model call gives is a pure function of settings and case.

The program has two branches, `facts` (slack) and `plan` (critical), joined by `answer`; a branch
may have a verifier. Six knobs, 144 candidates. A case succeeds with a probability that is logistic
in planted effects, interactions and the case's difficulty; seconds and tokens are planted too. The
truth of every candidate follows from the probabilities on fresh cases that no system sees.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.optimisation.candidates import Candidate
from weft.optimisation.goal import StudyGoal

Array = NDArray[np.float64]
KNOBS: Final[dict[str, tuple[str, ...]]] = {
    "facts.prompt": ("seed", "steps", "terse"),
    "facts.verify": ("no", "yes"),
    "plan.demos": ("none", "mixed", "near"),
    "plan.verify": ("no", "yes"),
    "answer.order": ("answer_first", "reason_first"),
    "answer.style": ("short", "long"),
}
BASELINE: Final = Candidate.of({knob: options[0] for knob, options in KNOBS.items()})
CANDIDATES: Final = tuple(
    Candidate.of(dict(zip(KNOBS, options, strict=True))) for options in product(*KNOBS.values())
)
DEVELOPMENT: Final = 150
TRAIN: Final = 150
HELD_OUT: Final = 200
CANARIES: Final = 32
FRESH: Final = 10_000
_SEEN: Final = DEVELOPMENT + TRAIN + HELD_OUT + CANARIES


@dataclass(frozen=True, slots=True)
class Cases:
    """Numbers of the cases of each split."""

    development: range = range(DEVELOPMENT)
    train: range = range(DEVELOPMENT, DEVELOPMENT + TRAIN)
    held_out: range = range(DEVELOPMENT + TRAIN, DEVELOPMENT + TRAIN + HELD_OUT)
    canaries: range = range(DEVELOPMENT + TRAIN + HELD_OUT, _SEEN)


CASES: Final = Cases()


@dataclass
class Planted:
    """What is planted: effects in logits by setting, what changes them, and times.

    `observed` adds to what a metric sees and not to the truth, by setting: on development cases
    (`bait`), everywhere (`hack`), or from a number of calls on (`drift`).
    """

    name: str
    base: float
    effects: dict[tuple[str, str], float]
    pairs: dict[tuple[tuple[str, str], tuple[str, str]], float] = field(default_factory=dict)
    muffled_without: tuple[str, str] | None = None
    bait: dict[tuple[str, str], float] = field(default_factory=dict)
    hack: dict[tuple[str, str], float] = field(default_factory=dict)
    drift: tuple[int, float] = (1 << 60, 0.0)
    goal: StudyGoal = field(default_factory=StudyGoal)
    seconds: dict[tuple[str, str], Callable[[Array, Array], Array]] = field(default_factory=dict)

    def tells(self, setting: tuple[str, object]) -> bool:
        """Whether a setting changes any answer: a lossless one changes times only."""
        plain = (self.effects, self.bait, self.hack)
        return any(each.get(setting) for each in plain) or any(  # type: ignore[call-overload]
            setting in pair for pair in self.pairs
        )

    def logit(self, candidate: Candidate) -> float:
        """Of a case of mean difficulty, in truth."""
        settings = dict(candidate.settings)
        active = set(settings.items())
        muffled = self.muffled_without is not None and self.muffled_without not in active
        total = 0.0
        for setting in active:
            effect = self.effects.get(setting, 0.0)  # type: ignore[arg-type]
            total += effect * (0.1 if muffled else 1.0)
        total += sum(each for pair, each in self.pairs.items() if set(pair) <= active)
        return self.base + total


class PlantedModel:
    """The planted program for one seed: scores, seconds and costs of cases, and the truth."""

    def __init__(self, planted: Planted, seed: int, noise: float = 0.5) -> None:
        self.planted, self.seed, self._own_share = planted, seed, noise
        random = np.random.default_rng((seed, 1))
        count = _SEEN + FRESH
        self.difficulty = random.normal(0, 1.2, count)
        self._shared = random.random(count)
        self._coin = random.random(count) < noise
        self._length = np.exp(random.normal(0, 0.35, (3, count)))
        self._tail = random.random((3, count))
        self._canary = np.zeros(count, dtype=bool)
        self._canary[list(CASES.canaries)] = True
        self._scores: dict[tuple[Candidate, bool], Array] = {}
        self._walls: dict[Candidate, Array] = {}

    def score(self, candidate: Candidate, drifted: bool) -> Array:
        """What the metric says of every seen case: 0 or 1."""
        found = self._scores.get((candidate, drifted))
        if found is None:
            chance = self._observed(candidate, drifted=drifted)[:_SEEN]
            draws = np.where(self._coin[:_SEEN], self._uniform(candidate), self._shared[:_SEEN])
            found = self._scores[candidate, drifted] = (draws < chance).astype(np.float64)
        return found

    def seconds(self, candidate: Candidate) -> Array:
        """The wall time of every case: the slower branch, then the answer."""
        found = self._walls.get(candidate)
        if found is None:
            settings = dict(candidate.settings)
            branches = []
            for at, (branch, size) in enumerate((("facts", 1.0), ("plan", 2.2), ("answer", 1.0))):
                time = size * self._length[at]
                for knob in KNOBS:
                    change = self.planted.seconds.get((knob, str(settings[knob])))
                    if knob.startswith(branch) and change is not None:
                        time = change(time, self._tail[at])
                branches.append(time)
            facts, plan, answer = branches
            facts = facts + 0.5 * (settings["facts.verify"] == "yes")
            plan = plan + 1.6 * (settings["plan.verify"] == "yes")
            found = self._walls[candidate] = np.maximum(facts, plan) + answer
        return found

    def cost(self, candidate: Candidate) -> float:
        """Cents a case."""
        settings = dict(candidate.settings)
        more = {"steps": 0.3, "mixed": 0.4, "near": 0.4, "reason_first": 0.3, "long": 0.6}
        calls = 3 + (settings["facts.verify"] == "yes") + (settings["plan.verify"] == "yes")
        return 0.1 * calls + 0.1 * sum(more.get(str(each), 0.0) for each in settings.values())

    def nodes(self, candidate: Candidate) -> list[tuple[object, ...]]:
        """The model calls of a case, each by what its value depends on."""
        settings = dict(candidate.settings)
        facts, plan = settings["facts.prompt"], settings["plan.demos"]
        calls: list[tuple[object, ...]] = [("facts", facts), ("plan", plan)]
        if settings["facts.verify"] == "yes":
            calls.append(("facts.verify", facts))
        if settings["plan.verify"] == "yes":
            calls.append(("plan.verify", plan))
        return [*calls, ("answer", candidate)]

    @cached_property
    def truth(self) -> Mapping[Candidate, float]:
        """The true improved figure of each candidate on fresh cases; -inf where not kept."""
        goal, found = self.planted.goal, {}
        limits = {each.name: self._margin(each.name, each.margin) for each in goal.keep}
        for candidate in CANDIDATES:
            figures = {
                each: self.true_figure(candidate, each) for each in {goal.improve.name, *limits}
            }
            kept = all(figures[name] >= limit for name, limit in limits.items())
            found[candidate] = figures[goal.improve.name] if kept else float("-inf")
        return found

    @cached_property
    def best(self) -> Candidate:
        """The best candidate in truth."""
        return max(CANDIDATES, key=self.truth.__getitem__)

    @property
    def room(self) -> float:
        """By how much the best candidate is better than the baseline, in truth."""
        return self.truth[self.best] - self.truth[BASELINE]

    def true_figure(self, candidate: Candidate, name: str) -> float:
        """An oriented figure on fresh cases: a mean chance, or minus a p95, or minus a cost."""
        if name == "quality":
            logits = self.planted.logit(candidate) + self.difficulty[_SEEN:]
            return float(np.mean(1 / (1 + np.exp(-logits))))
        if name == "cost":
            return -self.cost(candidate)
        return -float(np.quantile(self.seconds(candidate)[_SEEN:], 0.95))

    def _margin(self, name: str, margin: float) -> float:
        base = self.true_figure(BASELINE, name)
        return base - margin * (1.0 if name == "quality" else abs(base))

    def _observed(self, candidate: Candidate, *, drifted: bool) -> Array:
        active = set(candidate.settings)
        logits = np.full(_SEEN, self.planted.logit(candidate)) + self.difficulty[:_SEEN]
        logits[:DEVELOPMENT] += sum(v for k, v in self.planted.bait.items() if k in active)
        canary = self._canary[:_SEEN]
        logits[canary] = -2.5
        logits += sum(v for k, v in self.planted.hack.items() if k in active)
        logits += self.planted.drift[1] * drifted
        return 1 / (1 + np.exp(-logits))

    def _uniform(self, candidate: Candidate) -> Array:
        """Random numbers of a candidate's own; settings without any effect leave them alike."""
        telling = [each for each in candidate.settings if self.planted.tells(each)]
        digest = zlib.crc32(repr(telling).encode())
        return np.random.default_rng((self.seed, 2, digest)).random(_SEEN)
