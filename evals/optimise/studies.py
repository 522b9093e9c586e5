"""One study: a planted case, a seed, a system; what it returned, what it claimed, what it cost."""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import dataclass
from typing import Final

import numpy as np

from evals.optimise.bench import Bench, Reflector
from evals.optimise.cases import PLANTED
from evals.optimise.planted import BASELINE, CASES, KNOBS, PlantedModel
from evals.optimise.rivals import RIVALS
from weft.optimise.candidates import Candidate
from weft.optimise.decide import HeldOut
from weft.optimise.search import Search, SearchPlan, SearchReport

BUDGET: Final = 12_000
"""Fresh model calls that every system may make: some 4,000 runs of a program of three calls."""
QUALITIES: Final = (0.0, 0.2, 0.8)
"""How often the scripted reflector is right; studies take them in turn."""
FOUND: Final = 0.8
"""The share of the planted improvement that counts as having found it."""
SYSTEMS: Final = ("weft", *RIVALS)


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


def study(case: str, system: str, number: int, *, reuse: bool = True) -> Study:
    """Run study `number` of a case by a system. The same number plants the same model."""
    seed = zlib.crc32(case.encode()) % 10_000 * 1_000 + number
    model = PlantedModel(PLANTED[case](np.random.default_rng((seed, 0))), seed)
    q, bench = QUALITIES[number % len(QUALITIES)], Bench(model, reuse=reuse)
    if system == "weft":
        report = asyncio.run(search(bench, q, seed).run())
        best, verdict = report.verdict.candidate, report.verdict.kind
        claimed, reported = verdict == "improved", _reported(report, bench)
    else:
        rival = RIVALS[system](bench, q, BUDGET, seed)
        best, verdict = rival.run(), ""
        calls = bench.calls
        claimed, reported = best != BASELINE, rival.figure(best) - rival.figure(BASELINE)
        bench.calls = calls
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
        reported - gain if claimed else 0.0,
        bench.calls,
        bench.calls > BUDGET,
        verdict,
    )


def search(bench: Bench, q: float, seed: int) -> Search:
    """weft's search on a bench, as a study runs it."""
    return Search(
        bench,
        KNOBS,
        BASELINE,
        list(np.random.default_rng((seed, 5)).permutation(CASES.development).tolist()),
        HeldOut(list(CASES.held_out)),
        bench.model.planted.goal,
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


def returned(report: SearchReport) -> Candidate:
    """The candidate of a report's verdict."""
    return report.verdict.candidate
