"""Ctrl-C and SIGTERM: the first lets the run end in order, the second ends the process at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from weft.cli.exit_codes import ExitCode

_SHOW_CURSOR = "\x1b[?25h"


@contextmanager
def interrupts(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` in the running event loop at the first signal. Main thread only."""
    loop = asyncio.get_running_loop()
    with signals(lambda: loop.call_soon_threadsafe(stop)):
        yield


@contextmanager
def signals(first: Callable[[], object]) -> Iterator[None]:
    """Call `first` at the first signal, in the middle of whatever goes on. Main thread only."""
    came = 0

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        if came == 1:
            first()
        else:
            leave_at_once(ExitCode.INTERRUPTED)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_at_once(code: ExitCode) -> None:
    """End the process without waiting for threads that may never return."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is sys.stderr and stream.isatty():
                stream.write(_SHOW_CURSOR)
            stream.flush()
        except (OSError, ValueError, RuntimeError):
            continue
    os._exit(code)
