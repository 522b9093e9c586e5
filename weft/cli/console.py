"""The consoles of stdout and stderr, stdout reserved for one document, and Ctrl-C.

Printed text is never markup; files and pipes get plain text. The first Ctrl-C or SIGTERM ends the
run in order, the second ends the process at once.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from weft.cli.exit_code import ExitCode

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


_PLAIN_WIDTH = 120


def stdout() -> Console:
    """The console for results."""
    return console_on(sys.stdout)


def stderr() -> Console:
    """The console for progress, questions and errors."""
    return console_on(sys.stderr)


def console_on(stream: TextIO) -> Console:
    """A console on `stream` that prints text literally, and colours it only on a terminal."""
    from rich.console import Console

    console = Console(file=stream, markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PLAIN_WIDTH
    return console


def table(*columns: str, header: bool = True) -> Table:
    """A table without lines.

    Columns do not wrap, except those that begin with `~`; columns that begin with `>` are aligned
    right, and those with `!` fold long texts.
    """
    from rich.table import Table

    made = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_header=header)
    for column in columns:
        made.add_column(
            column.lstrip(">~!"),
            justify="right" if column.startswith(">") else "left",
            no_wrap=not column.startswith("~"),
            overflow="fold" if column.startswith(("~", "!")) else "ellipsis",
        )
    return made


def print_more(console: Console, total: int, shown: int, what: str) -> None:
    """Print `… and N more rows; --json has them all` if some are not shown."""
    if total > shown:
        console.print(f"… and {total - shown:,} more {what}")


@contextmanager
def stdout_reserved() -> Iterator[None]:
    """Redirect all output to stdout to stderr: prints, C code, child processes."""
    try:
        out, err = sys.stdout.fileno(), sys.stderr.fileno()
    except (OSError, io.UnsupportedOperation):  # no file descriptors: under a test runner
        with redirect_stdout(sys.stderr):
            yield
        return
    sys.stdout.flush()
    saved = os.dup(out)
    os.dup2(err, out)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, out)
        os.close(saved)


_SHOW_CURSOR = "\x1b[?25h"


@contextmanager
def interrupts(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` in the running event loop at the first signal. Main thread only."""
    loop = asyncio.get_running_loop()
    with signals(lambda: loop.call_soon_threadsafe(stop)):
        yield


@contextmanager
def signals(first: Callable[[], object]) -> Iterator[None]:
    """Call `first` at the first signal, in the middle of other code. Main thread only."""
    received = 0

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received == 1:
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
