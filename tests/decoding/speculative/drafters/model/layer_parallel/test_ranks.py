"""Ranks in processes of their own: the same drafts, and an end to everything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.decoding.speculative.drafters.model.layer_parallel.drafting import exact
from weft.core.errors import ModelUnavailable, StartError
from weft.decoding.speculative.drafters.model.layer_parallel import processes
from weft.decoding.speculative.drafters.model.layer_parallel.layered import DraftJob, InProcessTeam
from weft.decoding.speculative.drafters.model.layer_parallel.processes import ProcessTeam

JOBS = [DraftJob(0, 0, (5, 6, 7, 60, 61), 6), DraftJob(1, 0, (9, 10), 3)]
LATER = [DraftJob(0, 5, (44,), 4), DraftJob(1, 2, (11, 12, 13), 5)]


def descendants() -> set[int]:
    """Rank processes that this one started."""
    pids = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it ends while we look; also a zombie is none
            if processes.PROGRAM in process.cmdline():
                pids.add(process.pid)
    return pids


@pytest.fixture
def two(tiny_path: Path) -> Iterator[ProcessTeam]:
    before = descendants()
    ranks = ProcessTeam(exact(tiny_path))
    yield ranks
    ranks.close()
    ranks.close()  # harmless
    assert descendants() == before


def test_processes_draft_what_one_drafts_and_nobody_outside_can_connect(
    two: ProcessTeam, tiny_path: Path
) -> None:
    one = InProcessTeam(exact(tiny_path))
    drafts: list[list[list[int]]] = []
    assert two.forwards == 0

    def from_a_thread() -> None:
        drafts.append(two.draft(JOBS))

    thread = threading.Thread(target=from_a_thread)
    thread.start()
    thread.join()
    drafts.append(two.draft(LATER))
    assert drafts == [one.draft(JOBS), one.draft(LATER)]
    nobody_outside_can_connect()


def nobody_outside_can_connect() -> None:
    mine = psutil.Process()
    listening = [
        connection.laddr.ip
        for process in (mine, *map(psutil.Process, descendants()))
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert set(listening) == {"127.0.0.1"}


def test_a_lost_rank_is_told_and_nothing_is_left(two: ProcessTeam) -> None:
    (pid,) = descendants()
    two.draft(JOBS)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ModelUnavailable, match="a rank of the draft model was lost"):
        two.draft(LATER)
    assert descendants() == set()
    with pytest.raises(ModelUnavailable, match="are gone"):
        two.draft(LATER)


def test_an_error_of_ours_lets_the_others_go(
    two: ProcessTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert two._layered is not None

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(two._layered._shards[0], "best", stop)
    with pytest.raises(KeyboardInterrupt):
        two.draft(JOBS)
    assert descendants() == set()


def test_ranks_end_with_their_parent(tiny_path: Path) -> None:
    program = f"""
        import os
        from pathlib import Path
        import psutil
        from weft.decoding.speculative.drafters.model.layer_parallel.shard import ShardLayout
        from weft.decoding.speculative.drafters.model.layer_parallel.processes import ProcessTeam
        ranks = ProcessTeam(ShardLayout(Path({str(tiny_path)!r}), dtype="float32"))
        print(*(process.pid for process in psutil.Process().children()), flush=True)
        os.kill(os.getpid(), 9)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        check=False,
    )
    (pid,) = map(int, ran.stdout.split())
    try:
        psutil.Process(pid).wait(120)
    except psutil.NoSuchProcess:
        return


def test_a_rank_that_cannot_start_is_told_with_its_last_words(
    tiny_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = descendants()
    monkeypatch.setattr(processes, "PROGRAM", "weft.no_such_program")
    with pytest.raises(StartError, match=r"rank 1 ended before it was ready.*no_such_program"):
        ProcessTeam(exact(tiny_path))
    assert descendants() == before


def test_a_rank_that_never_comes_is_not_waited_for(
    tiny_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "PROGRAM", "code")  # reads what it is told, and is never ready
    with pytest.raises(StartError, match="rank 1 was not ready"):
        ProcessTeam(exact(tiny_path), start_s=1.0)
