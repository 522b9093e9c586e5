"""Two processes on one journal: never both have one run, and anybody may watch."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.crash.killed import forked, sound, undisturbed
from tests.integration.crash.ledger import entries
from tests.integration.crash.part import RUN, Death, Dying, go_on
from weft.core.errors import RunBusy, RunExists
from weft.core.events import RunFinished, RunStarted
from weft.durability.journal.sqlite import SqliteJournal

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
_BUSY = 7
_SEED = 3
_PATIENCE_S = 120.0


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.durability.journal.sqlite.tables.BUSY_S", _PATIENCE_S)


class Gate:
    """Holds a process back before its `number`-th append (from 1), until this one opens."""

    def __init__(self, number: int) -> None:
        self._left = number
        self._here, self._there = socket.socketpair()
        self._here.settimeout(_PATIENCE_S)

    def __call__(self, moment: str) -> None:
        self._left -= moment == "append"
        if moment == "append" and self._left == 0:
            self._there.sendall(b"here")
            self._there.recv(1)

    def reached(self) -> None:
        """Wait until the process stands before it."""
        assert self._here.recv(4) == b"here"

    def open(self) -> None:
        self._here.sendall(b"!")

    def close(self) -> None:
        self._here.close()
        self._there.close()


def _takes(folder: Path, dying: Callable[[str], None] | None = None) -> Callable[[], None]:
    def work() -> None:
        try:
            go_on(folder, _SEED, dying=dying)
        except (RunBusy, RunExists):
            os._exit(_BUSY)

    return work


def _ended(child: int, options: int = 0) -> int | None:
    """How a process ended; with `WNOHANG`, None where it goes on."""
    ended, status = os.waitpid(child, options)
    return os.waitstatus_to_exitcode(status) if ended else None


def test_of_many_processes_one_at_a_time_has_the_run(tmp_path: Path) -> None:
    expected = undisturbed(tmp_path / "alone", _SEED)
    folder = tmp_path / "shared"
    folder.mkdir()
    draw = random.Random(5)
    ends: list[int | None] = []
    for _ in range(5):
        children = [forked(_takes(folder)) for _ in range(3)]
        time.sleep(draw.random() * 0.03)
        os.kill(children[0], signal.SIGKILL)  # it may have the run, or not yet, or no longer
        ends += [_ended(child) for child in children]
    dying = 3
    for number in range(2, 2 + dying):  # whoever has the run begins a part, and dies
        death = Death("appended", number)
        children = [forked(_takes(folder, Dying(death))) for _ in range(3)]
        ends += [_ended(child) for child in children]
    assert set(ends) <= {0, _BUSY, -signal.SIGKILL}
    assert _ended(forked(_takes(folder))) == 0, "nobody else wants it"
    sound(folder)
    journal = SqliteJournal(folder / "journal.sqlite")
    records = list(journal.records(RUN))
    journal.close()
    parts = [each.part for each in records]
    assert parts == sorted(parts), "two wrote at once"
    begun = [each.part for each in records if isinstance(each.record, RunStarted)]
    assert begun == sorted(set(parts)), "two processes made one part"
    assert len(begun) > dying
    assert json.loads((folder / "result").read_text()) == expected.result
    assert {key: n for key, n in entries(folder / "ledger").items() if n > 1} == {}


def test_a_run_is_watched_from_another_process_while_it_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "watched"
    folder.mkdir()
    gate = Gate(3)
    child = forked(_takes(folder, gate))
    journal = SqliteJournal(folder / "journal.sqlite")
    gate.reached()
    seen = list(journal.records(RUN))
    assert seen, "it was seen while it went on"
    assert not any(isinstance(each.record, RunFinished) for each in seen)
    gate.open()
    end = None
    while end is None:
        end = _ended(child, os.WNOHANG)
        seen += journal.records(RUN, after=seen[-1].seq)
    assert end == 0
    assert [each.seq for each in seen] == list(range(1, len(seen) + 1))
    assert seen == list(journal.records(RUN))
    last = seen[-1].record
    assert isinstance(last, RunFinished)
    assert journal.summary(RUN).standing == last.status
    journal.close()
    gate.close()


def test_whoever_dies_gives_the_run_back(tmp_path: Path) -> None:
    folder = tmp_path / "given back"
    folder.mkdir()
    journal = SqliteJournal(folder / "journal.sqlite")
    gate = Gate(2)
    child = forked(_takes(folder, gate))
    gate.reached()  # it has the run, and does nothing with it
    assert journal.summary(RUN).standing == "running"
    with pytest.raises(RunBusy):
        journal.claim(RUN)
    os.kill(child, signal.SIGKILL)
    assert _ended(child) == -signal.SIGKILL
    assert journal.summary(RUN).standing == "interrupted"
    journal.claim(RUN).release()
    journal.close()
    gate.close()
