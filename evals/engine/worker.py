"""One system with one case in a process of its own: runs it as often as it is asked.

`python -m evals.engine.worker SYSTEM CASE FOLDER` writes a line of JSON when it is ready, and one
for each line it reads: a number is a sample of so many runs, "bytes" what it has stored so far.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import resource
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from evals.engine.cases import TALLY, Case, case_named
from evals.engine.systems import Unsupported, load

_STATUS = Path("/proc/self/status")
_SAMPLE_S = 0.06
_SMALL = {"fanout": "fanout_3", "map": "map_3", "conversation": "conversation_3"}


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds of one run, the mean of several where one is short."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Ready:
    """What the first two runs have shown: how many runs make a sample, and how long it takes.

    `added_bytes` is what the case added to the memory of a process that has run a small one.
    """

    loops: int
    sample_s: float
    build_ms: float
    peak_bytes: int
    added_bytes: int


class Contestant:
    """One system with one case built."""

    def __init__(self, system: str, case: Case, folder: Path, runner: asyncio.Runner) -> None:
        self._name = system
        self._case = case
        self._runner = runner
        build = load(system)
        began = perf_counter()
        self._program = build(system, case, folder)
        self.build_ms = (perf_counter() - began) * 1e3

    def sample(self, loops: int = 1) -> Sample:
        """The mean of some runs. Raises `RuntimeError` on skipped or left-over work.

        Short ones follow a run that is not timed: other processes have had the caches since.
        """
        gc.collect()
        if loops > 1:
            self._run(1)
        TALLY.done = 0
        began = perf_counter(), process_time()
        self._run(loops)
        took = perf_counter() - began[0], process_time() - began[1]
        due = loops * len(self._case.tasks)
        if TALLY.done != due:
            raise RuntimeError(f"ran {TALLY.done:,} nodes where the graph has {due:,}")
        if asyncio.all_tasks(self._runner.get_loop()):
            raise RuntimeError(f"{self._name} left tasks behind")
        return Sample(took[0] / loops, took[1] / loops)

    def _run(self, loops: int) -> None:
        if inspect.iscoroutinefunction(self._program):
            self._runner.run(_repeat(self._program, loops))
            return
        for _ in range(loops):
            self._program()


async def _repeat(program: Callable[[], Awaitable[None]], loops: int) -> None:
    for _ in range(loops):
        await program()


def prepare(
    system: str, case: Case, folder: Path, runner: asyncio.Runner
) -> tuple[Contestant, Ready]:
    """The built case, run twice. Raises whatever the system raises."""
    small = case_named(_SMALL.get(case.shape, "chain_3"))
    Contestant(system, small, folder, runner).sample()  # imports what is imported at first use
    before = peak_bytes()
    contestant = Contestant(system, case, folder, runner)
    contestant.sample()
    took = contestant.sample()
    peak = peak_bytes()
    loops = 1 if case.sleeps else max(1, round(min(_SAMPLE_S / took.cpu_s, 0.5 / took.wall_s)))
    gc.collect()
    gc.freeze()
    seconds = took.wall_s * (loops + (loops > 1))
    return contestant, Ready(loops, seconds, contestant.build_ms, peak, peak - before)


def peak_bytes() -> int:
    """The most resident memory this process has had.

    From the kernel's own count where there is one: `ru_maxrss` of a child also covers its parent.
    """
    if _STATUS.exists():
        fields = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def stored_bytes(folder: Path) -> int:
    """The pages in use of all SQLite databases in `folder`, and all other files but their logs."""
    total = 0
    for path in (path for path in folder.rglob("*") if path.is_file()):
        if path.suffix in (".sqlite", ".db"):
            total += _used_bytes(path)
        elif not path.name.endswith(("-wal", "-shm", ".pyc", ".py", ".yaml")):
            total += path.stat().st_size
    return total


def _used_bytes(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(FULL)")
        pages, free, size = (
            database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)


def main() -> None:
    """Serve until stdin ends."""
    system, case, where = sys.argv[1:]
    folder = Path(where)
    with asyncio.Runner() as runner:
        try:
            contestant, ready = prepare(system, case_named(case), folder, runner)
        except Exception as error:  # noqa: BLE001 - a peer may refuse in any way it likes
            _say(_refusal(error))
            return
        _say(asdict(ready))
        for line in sys.stdin:
            try:
                found = _answer(contestant, line.strip(), folder)
            except Exception as error:  # noqa: BLE001 - as above
                found = _refusal(error)
            _say(found)


def _answer(contestant: Contestant, asked: str, folder: Path) -> dict[str, Any]:
    if asked == "bytes":
        return {"bytes": stored_bytes(folder)}
    return asdict(contestant.sample(int(asked)))


def _refusal(error: Exception) -> dict[str, Any]:
    if isinstance(error, Unsupported):
        return {"error": str(error)}
    first = (str(error).splitlines() or ["no message"])[0]
    return {"error": f"{type(error).__name__}: {first[:200]}"}


def _say(found: dict[str, Any]) -> None:
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
