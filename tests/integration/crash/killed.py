"""Runs that are killed at random and resumed until they are done, in forks of this process."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.crash.ledger import entries
from tests.integration.crash.part import RUN, Death, Dying, go_on
from weft.durability.journal.sqlite import SqliteJournal
from weft.engine.runner.recorder import Durability

_LONGEST_S = 120.0


@dataclass(frozen=True, slots=True)
class Survived:
    """How often a run was killed until it was done, and what it came to."""

    kills: int
    result: dict[str, Any]
    ledger: dict[str, int]


def forked(work: Callable[[], None]) -> int:
    """Do `work` in a child; its process id. The child ends with 0, or 1 when `work` raises."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def undisturbed(folder: Path, seed: int) -> Survived:
    """The run that nobody kills."""
    return survived(folder, seed, "sync", random.Random(0), kills=0)


def survived(
    folder: Path, seed: int, durability: Durability, draw: random.Random, *, kills: int
) -> Survived:
    """The run of `seed`, killed at most `kills` times; raises what it should not come to."""
    folder.mkdir()
    killed = 0
    for part in range(kills + 1):
        death, delay_s = _drawn(draw) if part < kills else (None, None)
        child = forked(lambda death=death: go_on(folder, seed, durability, Dying(death)))  # type: ignore[misc]
        if delay_s is not None:
            time.sleep(delay_s)
            os.kill(child, signal.SIGKILL)
        status = status_of(child)
        if os.WIFSIGNALED(status):
            killed += 1
            if killed % 2:
                sound(folder)
        elif os.WEXITSTATUS(status):
            raise AssertionError(f"seed {seed} in {folder}: a part of the run failed")
        else:
            break
    sound(folder)
    result = json.loads((folder / "result").read_text())
    return Survived(killed, result, dict(entries(folder / "ledger")))


def status_of(child: int) -> int:
    """The status of a child, which must end by itself some time."""
    until = time.monotonic() + _LONGEST_S
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("a part of a run does not come to its end")


def sound(folder: Path) -> None:
    """Assert that the journal in `folder` is whole. A process may die before it has made one."""
    path = folder / "journal.sqlite"
    if not path.exists():
        return
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
    journal = SqliteJournal(path)
    assert list(journal.check()) == []
    if any(summary.run == RUN for summary in journal.runs()):
        list(journal.records(RUN))
    journal.close()


def _drawn(draw: random.Random) -> tuple[Death | None, float | None]:
    """How a process dies: at a moment of its own, or after so many seconds."""
    kind = draw.random()
    if kind < 0.4:
        return None, draw.random() * 0.08
    if kind < 0.6:
        return Death("acted", draw.randint(1, 4)), None
    moment = "append" if kind < 0.8 else "appended"
    return Death(moment, draw.randint(1, 30)), None  # type: ignore[arg-type]
