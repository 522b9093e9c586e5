"""Programs that use the machine, through `weft.Flow` at its defaults: computing, no-ops, and both.

Each is recorded with eight slots, predicted for one, two and eight, and run for real, in rounds.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import weft
from evals.engine.rows import Row
from evals.reasoning.report import Target
from weft.core.ports.journal import Journal
from weft.durability.simulate import Change, Prediction, RecordedRun, simulate
from weft.workflow.history.simulation import recording_of
from weft.workflow.runtime.journals import open_journal

RECORDED: Final = 8
SLOTS: Final = (1, 2, 8)
TARGETS: Final = (Target("all", "weft", "median_error", 0.15, at_most=True),)


@weft.tool(effect="pure")
def squares(count: int) -> int:
    """Compute in Python, which one thread at a time can."""
    return sum(number * number for number in range(count))


@weft.tool(effect="pure")
def digest(rounds: int) -> str:
    """Compute in C, which threads do side by side."""
    return hashlib.pbkdf2_hmac("sha256", b"weft", b"salt", rounds).hex()


@weft.tool(effect="pure")
async def same(item: int) -> int:
    """Nothing."""
    return item


@weft.tool(effect="pure")
async def wait(seconds: float) -> float:
    """Wait for the outside."""
    await asyncio.sleep(seconds)
    return seconds


def cpu_python(flow: weft.Flow) -> Any:
    """A map of functions that compute in Python."""
    return flow.map(
        [400_000 + 50_000 * (n % 5) for n in range(30)], lambda n: flow.tool(squares, count=n)
    )


def cpu_native(flow: weft.Flow) -> Any:
    """A map of functions that compute without the interpreter's lock."""
    return flow.map(
        [60_000 + 9_000 * (n % 5) for n in range(30)], lambda n: flow.tool(digest, rounds=n)
    )


def no_op(flow: weft.Flow) -> Any:
    """Nodes that are shorter than the event loop's own time."""
    return flow.map(list(range(2_000)), lambda n: flow.tool(same, item=n))


def mixed(flow: weft.Flow) -> Any:
    """Waiting, computing and neither, one after the other, in each of twenty items."""

    def item(n: Any) -> Any:
        waited = flow.tool(wait, seconds=0.05)
        computed = flow.tool(digest, rounds=40_000, after=waited)
        return flow.tool(same, item=n, after=computed)

    return flow.map(list(range(20)), item)


PROGRAMS: Final[tuple[Callable[[weft.Flow], Any], ...]] = (cpu_python, cpu_native, no_op, mixed)


def rows(quick: bool) -> list[dict[str, Any]]:
    """All rows."""
    return [asdict(row) for row in _rows(5 if quick else 11)]


def _rows(rounds: int) -> Iterator[Row]:
    errors: list[float] = []
    with TemporaryDirectory() as folder:
        journal = open_journal(str(Path(folder) / "journal.sqlite"))
        try:
            for program in PROGRAMS:
                for row in _program(program, journal, rounds):
                    if row.metric == "error" and row.value is not None:
                        errors.append(row.value)
                    yield row
        finally:
            journal.close()
    yield Row("all", "weft", "median_error", median(errors), "share")
    yield Row("all", "weft", "worst_error", max(errors), "share")


def _program(program: Callable[[weft.Flow], Any], journal: Journal, rounds: int) -> Iterator[Row]:
    """Each round records anew and runs for real just after: both see the machine as it is then."""
    name = program.__name__
    flow = weft.Flow(name)
    flow.output(done=program(flow))
    real: dict[int, list[float]] = {slots: [] for slots in SLOTS}
    told: dict[int, list[Prediction]] = {slots: [] for slots in SLOTS}
    for number in range(rounds):
        print(f"load: {name}, round {number + 1}", file=sys.stderr, flush=True)
        found = _recorded(flow, journal)
        for slots in SLOTS:
            real[slots].append(_run(flow, journal, slots))
            told[slots].append(simulate(found, Change(workers=slots)))
    for slots in SLOTS:
        walls = [prediction.wall_s for prediction in told[slots]]
        ratios = [wall_s / real_s for wall_s, real_s in zip(walls, real[slots], strict=True)]
        case = f"{name}_{slots}"
        yield Row(case, "real", "wall_s", median(real[slots]), "s")
        yield Row(case, "weft", "wall_s", median(walls), "s")
        yield Row(case, "weft", "error", abs(median(ratios) - 1), "share")
        yield Row(case, "weft", "least_ratio", min(ratios), "ratio")
        yield Row(case, "weft", "most_ratio", max(ratios), "ratio")
        yield Row(
            case, "weft", "notes", max(float(len(each.notes)) for each in told[slots]), "notes"
        )


def _recorded(flow: weft.Flow, journal: Journal) -> RecordedRun:
    _run(flow, journal, RECORDED)
    latest = max(journal.runs(), key=lambda summary: summary.wall)
    return recording_of(journal, latest.run)


def _run(flow: weft.Flow, journal: Journal, slots: int) -> float:
    result = flow.run_sync(journal=journal, concurrency=slots)
    assert result.status == "succeeded", result.reasons
    return float(result.wall_s)
