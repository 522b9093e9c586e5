"""The machine of a recorded run: the load of its event loop and of its processors.

Recorded times include queueing. Processor seconds were measured, so the rest of a time is waiting
for the outside where the machine had capacity left, and queueing where it had none. Threads share
the processors equally (processor sharing, Kleinrock 1967); the loop serves one after another, and
the scheduler takes in at once what ended meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from statistics import median
from typing import Final

from weft.core.ids import NodeId
from weft.durability.simulate.script import NodeScript, RecordedRun, WorkStep
from weft.engine.analysis.critical_path import family

_FULL: Final = 0.75
"""The share of one processor, used by several threads at once, from which the machine is full."""
_IDLE: Final = 0.1
"""The idle share of the processors below which it is full in any case: other processes use it."""
_LOOP_FULL: Final = 0.7
_LOOP_BUSY: Final = 0.3
_MUCH: Final = 0.1
_STEP: Final = 1.2
"""The cost of a scheduling step with its write to the journal, however many nodes it takes in, as a
multiple of the cost of each node. Measured with 2,000 no-ops, one and eight at once: 0.9 to 1.7.
"""


@dataclass(frozen=True, slots=True)
class ResourceNeed:
    """The needs of a stretch of work: seconds of waiting, and of a processor."""

    wait_s: float
    cpu_s: float = 0.0


class MachineModel:
    """The machine of a recorded run, as far as it was measured.

    `step_s`: seconds of the event loop for each scheduling step, whatever it takes in.
    """

    def __init__(self, recording: RecordedRun) -> None:
        measured, scripts, wall_s = recording.measured, recording.every, recording.wall_s
        self.step_s = 0.0
        self._measured = measured
        self._loop_share = 0.0
        self._capacity: float | None = None
        self._node_s = 0.0
        self._slow = 1.0
        self._full: list[tuple[float, float]] = []
        if measured is None:
            return
        own_s = sum(seconds for _, seconds in measured.loop_s.values())
        runs = sum(count for count, _ in measured.loop_s.values())
        wanted_s = measured.loop_cpu_s + measured.loop_late_s
        self._loop_share = min(wanted_s / wall_s, 1.0) if wall_s > 0 else 0.0
        self._slow = wanted_s / measured.loop_cpu_s if measured.loop_cpu_s > 0 else 1.0
        loop_s = wall_s if self._loop_share >= _LOOP_FULL else wanted_s
        engine_s = max(loop_s - own_s * self._slow, 0.0)
        self._node_s = engine_s / max(runs + _STEP * recording.steps, 1.0)
        self.step_s = _STEP * self._node_s
        self._works_s = {node: _seconds(script) for node, script in scripts.items()}
        usage = _usage(scripts, measured.cpu_s, self._works_s)
        crowded = measured.idle is not None and measured.idle <= _IDLE
        least = 0.0 if crowded else _FULL
        several = [used for _, _, used, threads in usage if threads > 1 and used >= least]
        if several:
            self._capacity = min(median(several), float(measured.cores))
            full = _FULL * self._capacity
            self._full = [(begin, end) for begin, end, used, _ in usage if used >= full]
        self._computed = sum(measured.cpu_s.values()) / max(sum(self._works_s.values()), 1e-9)

    @property
    def processors(self) -> float:
        """Threads that compute in parallel without delay. For Python code of one process: one."""
        return self._capacity or 1.0

    def loop_s(self, node: NodeId) -> float:
        """Seconds of the event loop for a node: of its own code, and of the engine."""
        if self._measured is None:
            return 0.0
        return self._node_s + self._own_s(node)

    def need(self, node: NodeId, work: WorkStep) -> ResourceNeed:
        """The needs of a stretch of recorded `work` of `node`."""
        measured, seconds = self._measured, work.seconds
        if measured is None or seconds <= 0:
            return ResourceNeed(seconds)
        share = seconds / (self._works_s.get(node) or seconds)
        cpu_s = min(measured.cpu_s.get(node, 0.0) * share, seconds)
        left_s = max(seconds - cpu_s - self._own_s(node) * share, 0.0)
        if cpu_s > 0:
            left_s *= 1.0 - self._fullness(work)
        if self._loop_share >= _LOOP_FULL:
            left_s *= 1.0 - self._loop_share
        return ResourceNeed(left_s, cpu_s)

    def notes(self) -> tuple[str, ...]:
        """Where this model of the machine does not hold, in sentences."""
        if self._measured is None:
            return ("its machine's load was not recorded: code that computes keeps its time",)
        notes = []
        if self._computed >= _MUCH and self._capacity is None:
            notes.append(
                "its functions computed in threads, and never several at once on a free machine: "
                "counted as if one computed at a time"
            )
        if _LOOP_BUSY <= self._loop_share < _LOOP_FULL:
            notes.append(
                f"the event loop was busy {self._loop_share:.0%} of the time: what waited for it "
                "is counted as waiting for the outside"
            )
        return tuple(notes)

    def _own_s(self, node: NodeId) -> float:
        assert self._measured is not None
        count, seconds = self._measured.loop_s.get(family(node), (1, 0.0))
        return seconds / max(count, 1) * self._slow

    def _fullness(self, work: WorkStep) -> float:
        """The share of the time of `work` in which the machine was full."""
        end_s = work.begun_s + work.seconds
        shared_s = sum(
            max(0.0, min(end, end_s) - max(begin, work.begun_s)) for begin, end in self._full
        )
        return min(shared_s / work.seconds, 1.0)


class Processor:
    """Jobs that share `capacity` processors equally; none uses more than one."""

    def __init__(self, capacity: float) -> None:
        self._capacity = capacity
        self._served_s = 0.0  # what a job that was there from the beginning has received
        self._now_s = 0.0
        self._count = 0
        self._jobs: list[tuple[float, int, object]] = []

    def add(self, now_s: float, cpu_s: float, job: object) -> None:
        """Begin a job that needs `cpu_s`."""
        self._pass(now_s)
        self._count += 1
        heappush(self._jobs, (self._served_s + cpu_s, self._count, job))

    @property
    def next_s(self) -> float | None:
        """When the next job ends; None without jobs."""
        if not self._jobs:
            return None
        return self._now_s + max(self._jobs[0][0] - self._served_s, 0.0) / self._rate

    def ended(self, now_s: float) -> Iterable[object]:
        """Remove the jobs that have ended."""
        self._pass(now_s)
        while self._jobs and self._jobs[0][0] <= self._served_s + 1e-9:
            yield heappop(self._jobs)[2]

    @property
    def _rate(self) -> float:
        return min(1.0, self._capacity / len(self._jobs))

    def _pass(self, now_s: float) -> None:
        if self._jobs:
            self._served_s += max(now_s - self._now_s, 0.0) * self._rate
        self._now_s = max(now_s, self._now_s)


def _seconds(script: NodeScript) -> float:
    steps = [step for attempt in script.attempts for step in attempt.steps]
    return sum(step.seconds for step in steps if isinstance(step, WorkStep))


def _usage(
    scripts: Mapping[NodeId, NodeScript],
    cpu_s: Mapping[str, float],
    works_s: Mapping[NodeId, float],
) -> list[tuple[float, float, float, int]]:
    """Stretches of time: begin, end, processors used by threads of nodes, number of threads."""
    changes: list[tuple[float, float, int]] = []
    for node, script in scripts.items():
        if not cpu_s.get(node) or not works_s[node]:
            continue
        rate = min(cpu_s[node] / works_s[node], 1.0)
        for attempt in script.attempts:
            for step in attempt.steps:
                if isinstance(step, WorkStep) and step.seconds > 0:
                    changes.append((step.begun_s, rate, 1))
                    changes.append((step.begun_s + step.seconds, -rate, -1))
    changes.sort()
    found: list[tuple[float, float, float, int]] = []
    used, threads, since_s = 0.0, 0, 0.0
    for at_s, rate, thread in changes:
        if at_s > since_s and threads:
            found.append((since_s, at_s, used, threads))
        used, threads, since_s = used + rate, threads + thread, at_s
    return found
