"""Two processes on one journal: never both have one run, and anybody may watch."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.crash.killed import forked, sound, undisturbed
from tests.integration.crash.ledger import entries
from tests.integration.crash.part import RUN, go_on
from weft.core.errors import RunBusy, RunExists, UnknownReference
from weft.core.events import RunFinished, RunStarted
from weft.core.ports.journal import Numbered
from weft.engine.journal import SqliteJournal

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
_BUSY = 7
_SEED = 3


def _takes(folder: Path) -> Callable[[], None]:
    def work() -> None:
        try:
            go_on(folder, _SEED)
        except (RunBusy, RunExists):
            os._exit(_BUSY)

    return work


def _ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_of_many_processes_one_at_a_time_has_the_run(tmp_path: Path) -> None:
    expected = undisturbed(tmp_path / "alone", _SEED)
    folder = tmp_path / "shared"
    folder.mkdir()
    draw = random.Random(5)
    ends: list[int] = []
    for _ in range(5):
        children = [forked(_takes(folder)) for _ in range(3)]
        time.sleep(draw.random() * 0.03)
        os.kill(children[0], signal.SIGKILL)
        ends += [_ended(child) for child in children]
    assert set(ends) <= {0, _BUSY, -signal.SIGKILL}
    assert 0 in ends
    sound(folder)
    journal = SqliteJournal(folder / "journal.sqlite")
    records = list(journal.records(RUN))
    journal.close()
    parts = [each.part for each in records]
    assert parts == sorted(parts), "two wrote at once"
    begun = [each.part for each in records if isinstance(each.record, RunStarted)]
    assert begun == sorted(set(parts)), "two processes made one part"
    assert len(begun) > 2
    assert json.loads((folder / "result").read_text()) == expected.result
    assert {key: n for key, n in entries(folder / "ledger").items() if n > 1} == {}


def test_a_run_is_watched_from_another_process_while_it_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "watched"
    folder.mkdir()
    child = forked(_takes(folder))
    journal = SqliteJournal(folder / "journal.sqlite")
    seen: list[Numbered] = []
    reads = 0
    while not seen or not isinstance(seen[-1].record, RunFinished):
        try:
            news = list(journal.records(RUN, after=seen[-1].seq if seen else 0))
        except UnknownReference:
            news = []  # it has not begun
        reads += bool(news)
        seen += news
    assert _ended(child) == 0
    assert [each.seq for each in seen] == list(range(1, len(seen) + 1))
    assert reads > 1, "it was seen while it went on"
    assert seen == list(journal.records(RUN))
    end = seen[-1].record
    assert isinstance(end, RunFinished)
    assert journal.summary(RUN).standing == end.status
    journal.close()


def test_whoever_dies_gives_the_run_back(tmp_path: Path) -> None:
    folder = tmp_path / "given back"
    folder.mkdir()
    journal = SqliteJournal(folder / "journal.sqlite")
    child = forked(_takes(folder))
    while not any(summary.run == RUN for summary in journal.runs()):
        time.sleep(0.001)
    os.kill(child, signal.SIGSTOP)  # it has the run, and does nothing with it
    if journal.summary(RUN).standing == "running":
        with pytest.raises(RunBusy):
            journal.claim(RUN)
    os.kill(child, signal.SIGKILL)
    assert _ended(child) == -signal.SIGKILL
    journal.claim(RUN).release()
    journal.close()
