"""`python -m evals.routing [--quick] [--json FILE]`: choosing among models with planted skills.

Four scripted models, eight topics: each model is good at two topics, and one is better than the
others at the rest. A prompt is worded by templates of its topic; all prompts of a template are one
group, so that a router meets only templates that it has not learnt from. Whether a model answers
right is drawn once for each case. Measures choosing, not skill: no real model is asked.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Final

from evals.engine.rows import Row
from evals.results import environment, title, write_results
from weft.evaluation.statistics import bootstrap_mean
from weft.optimisation.router import (
    PolicyPoint,
    RoutedCase,
    best_single,
    calibration_error,
    out_of_fold,
    policy_point,
)
from weft.planner.choice import LossPredictor, LossRow, train

TOPICS: Final[Mapping[str, str]] = {
    "sums": "add subtract multiply total percent remainder digits apples price discount",
    "code": "function loop compile variable exception pointer recursion array class refactor",
    "law": "contract clause liability tenant court statute damages appeal plaintiff notice",
    "medicine": "dose symptom fever diagnosis chronic tablet allergy surgery nurse vaccine",
    "verse": "poem rhyme stanza sonnet moonlight metaphor ballad lyric haiku refrain",
    "travel": "train ticket border visa luggage hotel itinerary ferry museum harbour",
    "cooking": "simmer flour oven butter garlic whisk recipe dough season roast",
    "sport": "match referee league sprint goal tackle medal coach relay penalty",
}
MODELS: Final = ("general", "north", "south", "east")
SKILLED: Final = {
    "north": ("sums", "code"),
    "south": ("law", "medicine"),
    "east": ("verse", "travel"),
}
SECONDS: Final = {"general": 4.0, "north": 1.0, "south": 1.0, "east": 1.0}
_OPENINGS: Final = ("please explain", "tell me about", "i need help with", "what about", "quickly:")
_WEIGHTS: Final = (0.0, 0.1, 0.2, 0.4, 0.8)
_TEMPLATE_WORDS: Final = 3


def chance(model: str, topic: str, *, skills: bool) -> float:
    """The probability that a model is right about a topic."""
    if not skills:
        return 0.65 if model == "general" else 0.6
    if topic in SKILLED.get(model, ()):
        return 0.92
    return 0.65 if model == "general" else 0.25


def cases(count: int, seed: int, *, skills: bool = True) -> list[RoutedCase]:
    """`count` cases of ten templates for each topic."""
    random, found = Random(seed), []
    words = {topic: text.split() for topic, text in TOPICS.items()}
    templates = {
        (topic, number): random.sample(words[topic], _TEMPLATE_WORDS)
        for topic in TOPICS
        for number in range(10)
    }
    for _ in range(count):
        topic, number = random.choice(list(TOPICS)), random.randrange(10)
        shown = [*templates[topic, number], random.choice(words[random.choice(list(TOPICS))])]
        random.shuffle(shown)
        prompt = f"{random.choice(_OPENINGS)} {' '.join(shown)} {random.randint(1, 99)}"
        scores = {
            model: float(random.random() < chance(model, topic, skills=skills)) for model in MODELS
        }
        found.append(RoutedCase(f"{topic} {number}", prompt, scores, SECONDS))
    return found


class CounterPredictor:
    """The rival that counts: each word's mean loss by model, shrunk to the model's mean."""

    def __init__(self, rows: Sequence[LossRow]) -> None:
        self._means = best_single(rows).losses("")
        self._sums: dict[tuple[str, str], list[float]] = defaultdict(list)
        for row in rows:
            for word in set(row.prompt.split()):
                self._sums[word, row.model].append(row.loss)

    def losses(self, text: str) -> Mapping[str, float]:
        words = sorted(set(text.split()))
        return {
            model: fmean(
                (sum(found) + 2 * mean) / (len(found) + 2)
                for found in (self._sums.get((word, model), []) for word in words)
            )
            for model, mean in self._means.items()
        }


def routers(rows: Sequence[LossRow]) -> LossPredictor:
    """The router as `weft train-router` trains it."""
    return train(rows, characters=True, cautious=True)


def words_only(rows: Sequence[LossRow]) -> LossPredictor:
    """The same without runs of characters."""
    return train(rows, cautious=True)


SYSTEMS: Final = {
    "router": routers,
    "router, words only": words_only,
    "n-gram counters": CounterPredictor,
    "best single model": best_single,
}


def rows_of(sizes: Sequence[int], seeds: int) -> list[Row]:
    """Every policy in worlds with and without skills; intervals over cases, grouped by template."""
    rows: list[Row] = []
    for skills in (True, False):
        for size in sizes:
            case = f"{'skills' if skills else 'no skills'}, {size} cases"
            worlds = [cases(size, seed, skills=skills) for seed in range(seeds)]
            rows += _of(case, worlds)
    return rows


def _of(case: str, worlds: Sequence[Sequence[RoutedCase]]) -> list[Row]:
    """The rows of one kind of world; several worlds are joined, each with groups of its own."""
    joined = [
        RoutedCase(f"{number} {each.group}", each.prompt, each.scores, each.costs)
        for number, world in enumerate(worlds)
        for each in world
    ]
    rows, points = [], dict[str, PolicyPoint]()
    for system, trainer in SYSTEMS.items():
        losses = [own for world in worlds for own in out_of_fold(world, trainer)]
        points[system] = policy_point(joined, losses)
        rows += _rows(case, system, points[system])
        rows.append(Row(case, system, "calibration_error", calibration_error(joined, losses), ""))
        if system == "router":
            for weight in _WEIGHTS:
                swept = policy_point(joined, losses, weight)
                at = f"{case}, weight {weight:g}"
                rows.append(Row(at, system, "score", swept.score.mean, "share"))
                rows.append(Row(at, system, "seconds", swept.cost, "s"))
    gains = [
        each.scores[a] - each.scores[b]
        for each, a, b in zip(
            joined, points["router"].chosen, points["best single model"].chosen, strict=True
        )
    ]
    gain = bootstrap_mean(gains, groups=[each.group for each in joined])
    for name, figure in (("gain", gain.mean), ("gain_low", gain.low), ("gain_high", gain.high)):
        rows.append(Row(case, "router", name, figure, "share"))
    known = [
        {m: 1 - chance(m, each.group.split()[1], skills=case.startswith("skills")) for m in MODELS}
        for each in joined
    ]
    rows += _rows(case, "planted skills known", policy_point(joined, known))
    best = [max(each.scores.values()) for each in joined]
    hits = [
        fmean(score >= top for score in each.scores.values())
        for each, top in zip(joined, best, strict=True)
    ]
    mean = fmean(fmean(each.scores.values()) for each in joined)
    rows.append(Row(case, "random", "score", mean, "share"))
    rows.append(Row(case, "random", "regret", fmean(best) - mean, "share"))
    rows.append(Row(case, "random", "hits", fmean(hits), "share"))
    rows.append(Row(case, "oracle", "score", fmean(best), "share"))
    return rows


def _rows(case: str, system: str, point: PolicyPoint) -> list[Row]:
    found = []
    for name in ("score", "regret", "hits"):
        interval = getattr(point, name)
        found.append(Row(case, system, name, interval.mean, "share"))
        found.append(Row(case, system, f"{name}_low", interval.low, "share"))
        found.append(Row(case, system, f"{name}_high", interval.high, "share"))
    return found


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m evals.routing", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer worlds")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    rows = rows_of((60, 200, 600), 1 if asked.quick else 5)
    about = environment()
    print(f"\n{title(about)}\n")
    for row in rows:
        if row.value is not None:
            print(f"{row.case:<36} {row.system:<20} {row.metric:<18} {row.value:8.3f} {row.unit}")
    if asked.json:
        write_results(asked.json, rows, about)


if __name__ == "__main__":
    main()
