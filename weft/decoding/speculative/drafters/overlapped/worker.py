"""Where work beside the target is done: in a thread, or, for the same results, at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol


class Worker(Protocol):
    """Does one piece of work after the other."""

    def start(self, work: Callable[[], None]) -> Future[None]:
        """Begin `work`; what it raises is told by the future's `result`."""

    def close(self) -> None:
        """Wait for what was begun, and begin no more."""


class Threaded:
    """Implements `Worker` with one thread, which ends with `close` or the interpreter."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)

    def start(self, work: Callable[[], None]) -> Future[None]:
        return self._pool.submit(work)

    def close(self) -> None:
        self._pool.shutdown()


class Inline:
    """Implements `Worker` without a thread: work is done when it is begun."""

    def start(self, work: Callable[[], None]) -> Future[None]:
        done: Future[None] = Future()
        try:
            work()
        except Exception as error:  # noqa: BLE001 - told to who asks for the result
            done.set_exception(error)
        else:
            done.set_result(None)
        return done

    def close(self) -> None:
        """Nothing is under way."""
