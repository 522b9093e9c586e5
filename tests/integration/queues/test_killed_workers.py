"""Two workers on one journal: one is killed at random under load, again and again.

Its runs are continued by the other one, and no node that ended runs again.
"""

from __future__ import annotations

import asyncio
import os
import random
import select
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import pytest

import weft
from tests.integration.queues.workers import ITEMS, TOTAL, WorkerProcess, write_flow
from tests.postgres_server import PostgresServer, postgres_server
from weft.core.events import NodeFinished, RunResumed, RunStarted
from weft.core.ids import RunId
from weft.core.ports.journal import Journal
from weft.core.ports.queue import queue_of
from weft.workflow.history.recorded_workflow import result_of
from weft.workflow.history.run_history import read_history
from weft.workflow.queue.submission import SubmittedRun

SEED = 21
OPEN = 8
"""Runs that are under way or wait, at most."""
LEASE_S = 2.0


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


class Load:
    """Submits runs, and kills workers; `orphans`: their runs, and when."""

    def __init__(self, journal: Journal, file: Path) -> None:
        self._journal = journal
        self._flow = weft.load(file)
        self.submitted = 0
        self.orphans: list[tuple[RunId, datetime]] = []

    def fill(self) -> None:
        queue = queue_of(self._journal)
        for _ in range(OPEN - len(queue.entries(("queued", "running")))):
            self._flow.submit(
                {"run": self.submitted}, key=f"r{self.submitted}", journal=self._journal
            )
            self.submitted += 1

    async def ended(self) -> None:
        """Wait until all runs have ended."""
        for number in range(self.submitted):
            await SubmittedRun(RunId(f"r{number}"), self._journal).result()

    def kill(self, worker: WorkerProcess) -> None:
        held = self._held_by(worker)
        now = datetime.now(UTC)
        worker.kill()
        held |= self._held_by(worker)  # a server keeps the claim that came last
        self.orphans += [(run, now) for run in sorted(held)]

    def _held_by(self, worker: WorkerProcess) -> set[RunId]:
        entries = queue_of(self._journal).entries(("running",))
        return {entry.run for entry in entries if f"process {worker.pid} " in entry.holder}


PATIENCE_S = 120.0


class Ledger:
    """The lines that the workers' nodes write to a pipe."""

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()
        self._text = b""
        self.lines: list[tuple[int, int, int]] = []
        self.pids: set[int] = set()

    def read(self, count: int, fill: Callable[[], None]) -> None:
        """Read until there are `count` more lines, with enough runs for them."""
        wanted, until = len(self.lines) + count, time.monotonic() + PATIENCE_S
        while len(self.lines) < wanted:
            fill()
            if select.select([self._reading], [], [], 0.5)[0]:
                self._take(os.read(self._reading, 4096))
            elif time.monotonic() > until:
                pytest.fail("no worker writes")

    def close(self) -> None:
        """Read the rest, once no worker is left."""
        os.close(self.writing)
        while some := os.read(self._reading, 4096):
            self._take(some)
        os.close(self._reading)

    def _take(self, some: bytes) -> None:
        *lines, self._text = (self._text + some).split(b"\n")
        for line in lines:
            run, item, pid = map(int, line.split())
            self.lines.append((run, item, pid))
            self.pids.add(pid)


def survive(place: str, folder: Path, kills: int, *options: str) -> None:
    draw, file = random.Random(SEED), write_flow(folder)
    ledger, killed = Ledger(), set[int]()

    def start() -> WorkerProcess:
        return WorkerProcess(folder, place, ledger.writing, *options)

    with closing(weft.open_journal(place)) as journal:
        load = Load(journal, file)
        workers = [start(), start()]
        try:
            while len(killed) < kills:
                ledger.read(draw.randint(3, 20), load.fill)
                while not {worker.pid for worker in workers} <= ledger.pids:
                    ledger.read(1, load.fill)  # until both work
                chosen = draw.randrange(2)
                load.kill(workers[chosen])
                killed.add(workers[chosen].pid)
                workers[chosen] = start()
            asyncio.run(load.ended())
            assert [worker.drain() for worker in workers] == [0, 0]
        finally:
            for worker in workers:
                worker.kill()
            ledger.close()
        check(journal, load, ledger.lines, killed)


def check(
    journal: Journal, load: Load, lines: list[tuple[int, int, int]], killed: set[int]
) -> None:
    assert not journal.check()
    executed = Counter((run, item) for run, item, _ in lines)
    by_killed = Counter((run, item) for run, item, pid in lines if pid in killed)
    parts = 0
    for number in range(load.submitted):
        history = read_history(journal, RunId(f"r{number}"))
        assert result_of(history).outputs == {"total": TOTAL}
        ends = Counter(
            event.node
            for event in history.events
            if isinstance(event, NodeFinished) and not event.recalled and event.outcome.ok
        )
        assert set(ends.values()) == {1}, "a node that had ended ran again"
        parts += sum(isinstance(event, RunResumed) for event in history.events)
        for item in range(ITEMS):
            place = number, item
            # Each further execution replaces one that a killed worker did not bring to an end.
            assert executed[place] - 1 <= by_killed[place] <= executed[place]
    delays, twice = takeovers(journal, load.orphans)
    print(
        f"{len(killed)} kills, {load.submitted} runs, {parts} parts continued, {len(lines)} "
        f"executions of {load.submitted * ITEMS} items; {len(delays)} runs of killed workers were "
        f"continued after {median(delays):.2f} s (median), {delays[-1]:.2f} s (longest); apart from"
        f" {len(twice)} whose next worker was killed before it began: {twice[-1:] or 'none'}"
    )
    assert parts
    assert delays[-1] < 2 * LEASE_S, "a run waited for more than one lease"
    assert all(entry.state == "ended" for entry in queue_of(journal).entries())


def takeovers(
    journal: Journal, orphans: list[tuple[RunId, datetime]]
) -> tuple[list[float], list[float]]:
    """How long runs waited for their next part; and those whose next worker was killed, too."""
    once: list[float] = []
    twice: list[float] = []
    for run, killed in orphans:
        delay = resumed(journal, run, killed)
        if delay is not None:
            later = [(at - killed).total_seconds() for other, at in orphans if other == run]
            (twice if any(0 < at < delay for at in later) else once).append(delay)
    return sorted(once), sorted(twice)


def resumed(journal: Journal, run: RunId, killed: datetime) -> float | None:
    """Seconds until the next part of a run began; None where it had ended before."""
    for event in read_history(journal, run).events:
        if isinstance(event, (RunResumed, RunStarted)):
            began = datetime.fromisoformat(event.wall)
            if began > killed:
                return (began - killed).total_seconds()
    return None


OPTIONS = ("--lease", f"{LEASE_S:g}s", "--concurrency", str(OPEN), "--quiet")


def test_five_kills_on_a_server(server: PostgresServer, tmp_path: Path) -> None:
    survive(server.database(), tmp_path, 5, *OPTIONS)


@pytest.mark.slow
def test_a_hundred_kills_on_a_server(server: PostgresServer, tmp_path: Path) -> None:
    survive(server.database(), tmp_path, 100, *OPTIONS)


@pytest.mark.slow
def test_twenty_kills_on_a_file(tmp_path: Path) -> None:
    survive(str(tmp_path / "journal.sqlite"), tmp_path, 20, *OPTIONS)
