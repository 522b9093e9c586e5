"""Times every system on one graph after another, interleaved, in this one process.

A round gives each system one sample, in an order that rotates. A sample is the mean of as many
runs, back to back, as fill `_SAMPLE_S`. Before it, garbage is collected; whatever was alive when
the rounds began is frozen, so that no system pays for another's objects. Building the graph is
timed apart. Reads its plan as JSON lines from stdin, writes a JSON line per case to stdout.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from time import perf_counter

from evals.engine.cases import CASES, Case, Tally, chain
from evals.engine.systems import Program, load

_SAMPLE_S = 0.01


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to measure one case: about `seconds`, from `least` to `most` rounds."""

    seconds: float
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of one case in milliseconds. Samples of one place belong to one round."""

    case: str
    build_ms: dict[str, float] = field(default_factory=dict)
    samples_ms: dict[str, list[float]] = field(default_factory=dict)


class Contestant:
    """One system with one case built."""

    def __init__(self, system: str, case: Case) -> None:
        self.system = system
        self.build_ms = 0.0
        self.loops = 1
        self._case = case
        self._tally = Tally()
        self._program = self._build()

    def _build(self) -> Program:
        build = load(self.system)
        began = perf_counter()
        program = build(self._case, self._tally)
        self.build_ms = (perf_counter() - began) * 1e3
        return program

    async def sample(self) -> float:
        """Seconds of one run (mean). Raises `RuntimeError` on skipped or left-over work."""
        self._tally.done = 0
        gc.collect()
        began = perf_counter()
        for _ in range(self.loops):
            await self._program()
        took = (perf_counter() - began) / self.loops
        due = self.loops * len(self._case.tasks)
        if self._tally.done != due:
            raise RuntimeError(f"ran {self._tally.done:,} nodes where the graph has {due:,}")
        if len(asyncio.all_tasks()) > 1:
            raise RuntimeError(f"{self.system} left tasks behind")
        return took

    async def warm_up(self) -> float:
        """Run twice; set how many runs make a sample. Returns the expected seconds of one."""
        await self.sample()
        took = await self.sample()
        self.loops = max(1, round(_SAMPLE_S / took))
        return took * self.loops


async def measure(case: Case, systems: Sequence[str], pace: Pace) -> Timing:
    """Time `systems` on `case`, interleaved."""
    contestants = [Contestant(system, case) for system in systems]
    round_s = sum([await contestant.warm_up() for contestant in contestants])
    timing = Timing(
        case.name,
        {contestant.system: contestant.build_ms for contestant in contestants},
        {contestant.system: [] for contestant in contestants},
    )
    rounds = min(pace.most, max(pace.least, int(pace.seconds / round_s)))
    gc.collect()
    gc.freeze()
    try:
        for turn in range(rounds):
            first = turn % len(contestants)
            for contestant in contestants[first:] + contestants[:first]:
                took = await contestant.sample()
                timing.samples_ms[contestant.system].append(took * 1e3)
    finally:
        gc.unfreeze()
    return timing


async def main() -> None:
    """Serve a plan of lines `{"case", "systems", "seconds", "least", "most"}`."""
    plan = [json.loads(line) for line in sys.stdin]
    for system in {system: None for step in plan for system in step["systems"]}:
        await Contestant(system, chain("warm_up", 3)).warm_up()  # imports and caches on first use
    for step in plan:
        pace = Pace(step["seconds"], step["least"], step["most"])
        timing = await measure(CASES[step["case"]], step["systems"], pace)
        print(json.dumps(asdict(timing)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
