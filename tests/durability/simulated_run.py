"""A small discrete-event simulation that emits the events of a run, to test what reads them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from weft.core.errors import Failure
from weft.core.events import (
    Event,
    GraphGrew,
    NodeFinished,
    NodeInfo,
    NodeRetrying,
    NodeStarted,
    NodeWaiting,
    Outcome,
    RunFinished,
    RunStarted,
)
from weft.core.ids import NodeId, RunId
from weft.core.values import Usage

FLAKY = Failure("ModelUnavailable", "connection reset", "model", True)


@dataclass(frozen=True)
class Job:
    """A node: `works_s` is the length of each attempt (all but the last fail), `then_s` what it
    does with its children."""

    id: str
    works_s: tuple[float, ...] = (1.0,)
    sources: tuple[str, ...] = ()
    children: tuple[Job, ...] = ()
    then_s: float = 0.0
    delay_s: float = 1.0
    kind: str = "call"


def simulate(jobs: Iterable[Job], slots: int | None = None) -> list[Event]:
    """The events of a run of `jobs` in which at most `slots` of them work at once."""
    return _Simulation(slots).run(tuple(jobs))


class _Simulation:
    def __init__(self, slots: int | None) -> None:
        self.free = slots
        self.now = 0.0
        self.events: list[Event] = []
        self.jobs: dict[str, Job] = {}
        self.parents: dict[str, str] = {}
        self.attempt: dict[str, int] = {}
        self.open_children: dict[str, int] = {}
        self.done: set[str] = set()
        self.pending: list[Job] = []
        self.ready: deque[str] = deque()
        self.timers: list[tuple[float, int, str, str]] = []

    def run(self, jobs: tuple[Job, ...]) -> list[Event]:
        infos = self.add(jobs, None)
        self.events.append(RunStarted(RunId("r"), "flow", "2026-01-01T00:00:00Z", infos, {}))
        self.settle()
        while self.timers:
            self.now, _, what, node = heappop(self.timers)
            getattr(self, what)(node)
            self.settle()
        self.events.append(RunFinished("succeeded", Usage(), (), self.now))
        return self.events

    def add(self, jobs: tuple[Job, ...], parent: str | None) -> tuple[NodeInfo, ...]:
        self.pending.extend(jobs)
        for job in jobs:
            self.jobs[job.id] = job
            if parent is not None:
                self.parents[job.id] = parent
        return tuple(
            NodeInfo(
                NodeId(job.id),
                job.kind,
                tuple(map(NodeId, job.sources)),
                None,
                None if parent is None else NodeId(parent),
            )
            for job in jobs
        )

    def settle(self) -> None:
        released = [job for job in self.pending if self.done.issuperset(job.sources)]
        if released:
            self.pending = [job for job in self.pending if not self.done.issuperset(job.sources)]
            self.ready.extend(job.id for job in released)
        while self.ready and self.free != 0:
            if self.free is not None:
                self.free -= 1
            self.start(self.ready.popleft())

    def later(self, seconds: float, what: str, node: str) -> None:
        heappush(self.timers, (self.now + seconds, len(self.events), what, node))

    def start(self, node: str) -> None:
        attempt = self.attempt[node] = self.attempt.get(node, 0) + 1
        self.events.append(NodeStarted(NodeId(node), attempt, self.now))
        self.later(self.jobs[node].works_s[attempt - 1], "worked", node)

    def worked(self, node: str) -> None:
        job = self.jobs[node]
        if self.free is not None:
            self.free += 1
        if self.attempt[node] < len(job.works_s):
            failed = NodeRetrying(NodeId(node), self.attempt[node], job.delay_s, FLAKY, self.now)
            self.events.append(failed)
            self.later(job.delay_s, "retry", node)
        elif job.children:
            self.events.append(NodeWaiting(NodeId(node), self.now))
            self.open_children[node] = len(job.children)
            infos = self.add(job.children, node)
            self.events.append(GraphGrew(NodeId(node), infos, self.now))
        else:
            self.finish(node)

    def retry(self, node: str) -> None:
        self.ready.append(node)

    def finish(self, node: str) -> None:
        outcome = Outcome("succeeded", node, attempts=self.attempt[node])
        self.events.append(NodeFinished(NodeId(node), outcome, self.now))
        self.done.add(node)
        parent = self.parents.get(node)
        if parent is not None:
            self.open_children[parent] -= 1
            if not self.open_children[parent]:
                self.later(self.jobs[parent].then_s, "finish", parent)
