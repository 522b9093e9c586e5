"""One study: a planted case, a seed, a system; what it returned, what it claimed, what it cost."""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np

from evals.optimise.bench import Bench, Reflector, Reuse
from evals.optimise.cases import PLANTED
from evals.optimise.planted import BASELINE, CASES, KNOBS, PlantedModel
from evals.optimise.rivals import RIVALS
from weft.optimisation.decide import HeldOut
from weft.optimisation.goal import StudyGoal
from weft.optimisation.search import Search, SearchPlan, SearchReport

BUDGET: Final = 12_000
"""Fresh model calls that every system may make: some 4,000 runs of a program of three calls."""
QUALITIES: Final = (0.0, 0.2, 0.8)
"""How often the scripted reflector is right; studies take them in turn."""
FOUND: Final = 0.8
"""The share of the planted improvement that counts as having found it."""
SYSTEMS: Final = ("weft", *RIVALS)
PUBLISHED: Final[dict[str, Reuse]] = {
    "gepa_rules": "candidate",
    "aflow_rules": "none",
    "random": "candidate",
    "exhaustive": "candidate",
}
"""What publications reuse; MIPROv2's calls are cached by prompt, which is a cache by node."""


@dataclass(frozen=True, slots=True)
class Study:
    """What one system did. Gains are true, on fresh cases; `reported` is the system's own figure
    of what it returned, less the true one.
    """

    case: str
    system: str
    q: float
    found: bool
    claimed: bool
    gain: float
    room: float
    optimism: float
    calls: int
    overrun: bool
    verdict: str = ""

    @property
    def false(self) -> bool:
        """Claimed, and not better in truth (or one that breaks what was to be kept)."""
        return self.claimed and self.gain <= 0

    @property
    def gain_kept(self) -> float:
        """The gain; none where what was to be kept is broken."""
        return self.gain if self.gain > float("-inf") else 0.0


@lru_cache(maxsize=1)
def planted(case: str, number: int) -> PlantedModel:
    """The model of study `number` of a case."""
    seed = zlib.crc32(case.encode()) % 10_000 * 1_000 + number
    return PlantedModel(PLANTED[case](np.random.default_rng((seed, 0))), seed)


def study(case: str, system: str, number: int, reuse: Reuse = "node") -> Study:
    """Run study `number` of a case by a system. The same number plants the same model."""
    model = planted(case, number)
    seed = model.seed
    q, bench = QUALITIES[number % len(QUALITIES)], Bench(model, reuse)
    if system == "weft":
        report = asyncio.run(search(bench, q, seed).run())
        best, verdict = report.verdict.candidate, report.verdict.kind
        claimed, reported = verdict == "improved", _reported(report, bench)
    else:
        rival = RIVALS[system](bench, q, BUDGET, seed)
        best, verdict = rival.run(), ""
        claimed, reported = best != BASELINE, rival.figure(best) - rival.figure(BASELINE)
    gain = model.truth[best] - model.truth[BASELINE]
    found = not claimed if model.room <= 0 else gain >= FOUND * model.room
    return Study(
        case,
        system,
        q,
        found,
        claimed,
        gain,
        model.room,
        reported - gain if claimed and gain > float("-inf") else float("nan"),
        bench.calls,
        bench.calls > BUDGET,
        verdict,
    )


def all_systems(case: str, studies: int, first: int, number: int) -> list[Study]:
    """All systems on one model; the first fifth also with the reuse of the publications."""
    found = [study(case, system, number) for system in SYSTEMS]
    if number - first < max(8, studies // 5):
        for system, reuse in PUBLISHED.items():
            own = study(case, system, number, reuse)
            found.append(replace(own, system=f"{system}_as_published"))
    return found


def search(bench: Bench, q: float, seed: int, goal: StudyGoal | None = None) -> Search:
    """weft's search on a bench, as a study runs it."""
    return Search(
        bench,
        KNOBS,
        BASELINE,
        list(np.random.default_rng((seed, 5)).permutation(CASES.development).tolist()),
        HeldOut(list(CASES.held_out)),
        goal or bench.model.planted.goal,
        proposers=[Reflector(bench, q, np.random.default_rng((seed, 4)))],
        canaries=list(CASES.canaries) if bench.model.planted.hack else (),
        plan=SearchPlan(calls=BUDGET, seed=seed),
    )


def _reported(report: SearchReport, bench: Bench) -> float:
    """The gain on held-out cases of what was accepted."""
    improve = bench.model.planted.goal.improve.name
    for made in report.verdict.comparisons:
        if made.candidate == report.verdict.candidate:
            return made.gains[improve].mean
    return 0.0
