"""Times every system on one graph after another, interleaved, in this one process.

A round gives each system one sample, in an order drawn anew. A sample is the mean of as many runs,
back to back, as take about `_SAMPLE_S` of CPU time. It has a wall time and a CPU time: where other
programs are busy too, only the second compares systems fairly. Before it, garbage is collected;
whatever was alive when the rounds began is frozen, so that no system pays for another's objects.
Building the graph is timed apart.

Reads its plan as JSON lines from stdin, writes a JSON line for each case to stdout.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from time import perf_counter, process_time
from typing import NamedTuple

from evals.engine.cases import CASES, Case, Tally, chain
from evals.engine.systems import Program, load

_SAMPLE_S = 0.03


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to measure one case: about `seconds`, from `least` to `most` rounds."""

    seconds: float
    least: int
    most: int


class Sample(NamedTuple):
    """Seconds of one run."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of one case in milliseconds, by system. Places in the lists are rounds.

    `sleeps`: the tasks take time of their own, so that CPU time says little.
    """

    case: str
    sleeps: bool
    build_ms: dict[str, float] = field(default_factory=dict)
    wall_ms: dict[str, list[float]] = field(default_factory=dict)
    cpu_ms: dict[str, list[float]] = field(default_factory=dict)

    def note(self, system: str, sample: Sample) -> None:
        """Add the sample of one round."""
        self.wall_ms.setdefault(system, []).append(sample.wall_s * 1e3)
        self.cpu_ms.setdefault(system, []).append(sample.cpu_s * 1e3)


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

    async def sample(self) -> Sample:
        """The mean of some runs. Raises `RuntimeError` on skipped or left-over work."""
        self._tally.done = 0
        gc.collect()
        began = perf_counter(), process_time()
        for _ in range(self.loops):
            await self._program()
        took = perf_counter() - began[0], process_time() - began[1]
        due = self.loops * len(self._case.tasks)
        if self._tally.done != due:
            raise RuntimeError(f"ran {self._tally.done:,} nodes where the graph has {due:,}")
        if len(asyncio.all_tasks()) > 1:
            raise RuntimeError(f"{self.system} left tasks behind")
        return Sample(took[0] / self.loops, took[1] / self.loops)

    async def warm_up(self) -> float:
        """Run twice; set how many runs make a sample. Returns the expected seconds of one."""
        await self.sample()
        took = await self.sample()
        if not self._case.sleeps:
            self.loops = max(1, round(_SAMPLE_S / took.cpu_s))
        return took.wall_s * self.loops


async def measure(case: Case, systems: Sequence[str], pace: Pace) -> Timing:
    """Time `systems` on `case`, interleaved."""
    contestants = [Contestant(system, case) for system in systems]
    round_s = sum([await contestant.warm_up() for contestant in contestants])
    timing = Timing(case.name, case.sleeps, {each.system: each.build_ms for each in contestants})
    rounds = min(pace.most, max(pace.least, int(pace.seconds / round_s)))
    draw = random.Random(1)
    gc.collect()
    gc.freeze()
    try:
        for _ in range(rounds):
            for contestant in draw.sample(contestants, len(contestants)):
                timing.note(contestant.system, await contestant.sample())
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
