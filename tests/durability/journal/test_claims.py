"""Claims between real processes: one holder, and none after a death."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.durability.journal.lines import RUN, header, line, read
from tests.durability.journal.lock_timeouts import PATIENCE_S
from weft.core.errors import RunBusy
from weft.core.ids import RunId
from weft.durability.journal.sqlite import SqliteJournal

HOLDER = """
import sys
from tests.durability.journal.lines import RUN, header, line
from weft.durability.journal.sqlite import SqliteJournal
from tests.durability.journal.lock_timeouts import be_patient
be_patient()
journal = SqliteJournal(sys.argv[1])
claim = journal.begin(header())
number = 0
while True:
    number += 1
    journal.append(RUN, [line(number)])
    print(number, flush=True)
"""
RACER = """
import sys
from tests.durability.journal.lines import RUN, line
from weft.core.errors import RunBusy
from weft.durability.journal.sqlite import SqliteJournal
from tests.durability.journal.lock_timeouts import be_patient
be_patient()
journal = SqliteJournal(sys.argv[1])
sys.stdin.readline()
done = 0
while done < 20:
    try:
        claim = journal.claim(RUN)
    except RunBusy:
        continue
    count = journal.summary(RUN).records
    for number in range(count, count + 3):
        journal.append(RUN, [line(number)])
    claim.release()
    done += 1
"""
MAKER = """
import sys
from tests.durability.journal.lines import header
from weft.core.errors import RunExists
from weft.core.ids import RunId
from weft.durability.journal.sqlite import SqliteJournal
from tests.durability.journal.lock_timeouts import be_patient
be_patient()
sys.stdin.readline()
journal = SqliteJournal(sys.argv[1])
for number in range(20):
    try:
        journal.begin(header(RunId(f"run-{number}")))
        print(number, flush=True)
    except RunExists:
        pass
"""


@contextmanager
def process(program: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        try:
            yield started
        finally:
            started.kill()


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.durability.journal.sqlite.tables.BUSY_S", PATIENCE_S)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


def test_a_killed_process_loses_its_claim_and_nothing_it_wrote(path: Path) -> None:
    with process(HOLDER, path) as holder:
        assert holder.stdout is not None
        for _ in range(50):
            written = int(holder.stdout.readline())
        with closing(SqliteJournal(path)) as journal:
            assert journal.summary(RUN).standing == "running"
            with pytest.raises(RunBusy, match=f"process {holder.pid} on "):
                journal.claim(RUN)
            with pytest.raises(RunBusy):
                journal.prune(runs=[RUN])
            holder.send_signal(signal.SIGKILL)
            written += len(holder.stdout.read().split())
            holder.wait()
            assert journal.summary(RUN).standing == "interrupted"
            claim = journal.claim(RUN)
            records = read(journal)
            assert len(records) in (written, written + 1)  # killed before it could say so
            assert records == [line(number) for number in range(1, len(records) + 1)]
            journal.append(RUN, [line(0)])
            assert read(journal)[-1] == line(0)
            claim.release()
            assert not journal.check()


def test_processes_that_want_one_run_take_turns(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header()).release()
        with process(RACER, path) as one, process(RACER, path) as two:
            for racer in (one, two):
                assert racer.stdin is not None
                racer.stdin.write("\n")
                racer.stdin.flush()
            assert (one.wait(), two.wait()) == (0, 0)
        assert read(journal) == [line(number) for number in range(120)]
        assert not journal.check()


def test_processes_that_make_one_journal_share_it(path: Path) -> None:
    with process(MAKER, path) as one, process(MAKER, path) as two:
        outputs = []
        for maker in (one, two):
            assert maker.stdin is not None
            maker.stdin.write("\n")
            maker.stdin.flush()
        for maker in (one, two):
            assert maker.stdout is not None
            outputs.append({int(number) for number in maker.stdout.read().split()})
            assert maker.wait() == 0
    assert outputs[0] | outputs[1] == set(range(20))
    assert not outputs[0] & outputs[1]
    with closing(SqliteJournal(path)) as journal:
        assert len(journal.runs()) == 20
        assert {summary.standing for summary in journal.runs()} == {"interrupted"}


def test_two_journals_of_one_process_are_as_two_processes(path: Path) -> None:
    with closing(SqliteJournal(path)) as one, closing(SqliteJournal(path)) as two:
        claim = one.begin(header())
        with pytest.raises(RunBusy):
            two.claim(RUN)
        before = two.version()
        one.append(RUN, [line(1)])
        assert two.version() != before
        assert read(two) == [line(1)]
        claim.release()
        second = two.claim(RUN)
        claim.release()
        with pytest.raises(RunBusy):
            one.claim(RUN)
        second.release()


def test_closing_a_journal_gives_its_runs_back(path: Path) -> None:
    with closing(SqliteJournal(path)) as one:
        claim = one.begin(header())
    claim.release()
    with closing(SqliteJournal(path)) as two:
        assert two.summary(RUN).standing == "interrupted"
        two.claim(RUN)


def test_a_run_that_was_not_begun_leaves_no_claim(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header()).release()
        journal.begin(header(RunId("run-2")))
        journal.claim(RUN).release()
        assert [file.name for file in path.with_name("journal.sqlite.claims").iterdir()] == ["2"]
