from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("psycopg", reason="psycopg is not installed (extra `postgres`)")

from weft.workflow.postgres.shared_read import SharedRead


def test_callers_share_a_read_that_began_after_their_call() -> None:
    reads, entered, go = 0, threading.Event(), threading.Event()

    def read() -> int:
        nonlocal reads
        reads += 1
        number = reads
        entered.set()
        assert go.wait(60)
        return number

    shared = SharedRead(read)
    with ThreadPoolExecutor(20) as threads:
        first = threads.submit(shared)
        assert entered.wait(60)
        others = [threads.submit(shared) for _ in range(10)]
        while len(shared._changed._waiters) < 10:  # type: ignore[attr-defined]
            pass  # until all have called
        go.set()
        assert first.result() == 1
        assert {other.result() for other in others} == {2}
    assert reads == 2


def test_an_error_reaches_one_caller_and_the_next_reads() -> None:
    outcomes = [OSError("away"), 7]

    def read() -> int:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        assert isinstance(outcome, int)
        return outcome

    shared = SharedRead(read)
    with pytest.raises(OSError, match="away"):
        shared()
    assert shared() == 7
