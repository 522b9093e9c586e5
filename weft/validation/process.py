"""Checks that may take long, each in its own process with a limit of processor time.

The process reads its task from stdin; it does not inherit the environment, with its secrets.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from weft.core.errors import MachineBusy
from weft.validation.bounds import (
    MAX_PATTERN_BYTES,
    TIME_LIMIT_S,
    WAIT_LIMIT_S,
    NotJson,
    TooMuchToCheck,
    plain,
)

_COMMAND: Final = (sys.executable, "-P", str(Path(__file__).with_name("check.py")))
_INHERITED: Final = ("PATH", "PYTHONPATH", "PYTHONHOME", "SYSTEMROOT", "PYTHONDONTWRITEBYTECODE")
_THREADS: Final = ThreadPoolExecutor(os.cpu_count() or 1, "weft-checks")
"""Threads that wait for processes; more processes than processors would not be faster."""
_PLAIN_REASON: Final = "it does not fit the schema, which is too large to say where"


def check_apart(
    schema: object, value: object, limit_s: float = TIME_LIMIT_S, wait_s: float = WAIT_LIMIT_S
) -> str | None:
    """Why `value` does not fit, or None. Blocks.

    Raises: `TooMuchToCheck` after `limit_s` of processor time, `MachineBusy` when it did not get
    that much within `wait_s`, `NotJson`.
    """
    return _Check().run(schema, value, limit_s, wait_s)


async def check_apart_async(
    schema: object, value: object, limit_s: float = TIME_LIMIT_S, wait_s: float = WAIT_LIMIT_S
) -> str | None:
    """As `check_apart`, without blocking. Cancelling the caller kills the process."""
    check = _Check()
    job = _THREADS.submit(check.run, schema, value, limit_s, wait_s)
    try:
        return await asyncio.wrap_future(job)
    finally:
        check.end()


class _Check:
    """One process, which `end` kills, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False

    def run(self, schema: object, value: object, limit_s: float, wait_s: float) -> str | None:
        question = _question(schema, value)
        late = False
        with self._lock:
            if self._ended:
                return None  # the caller was cancelled
            self._process = process = subprocess.Popen(  # noqa: S603 - our own program
                (*_COMMAND, str(limit_s)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
            )
        with process:
            try:
                output, _ = process.communicate(question, wait_s)
            except subprocess.TimeoutExpired:
                late = True
                process.kill()
                output, _ = process.communicate()
        return _answer(output, late=late)

    def end(self) -> None:
        with self._lock:
            self._ended = True
            if self._process is not None and self._process.poll() is None:
                self._process.kill()


def _question(schema: object, value: object) -> bytes:
    """Raises: `NotJson`, `TooMuchToCheck`."""
    try:
        return json.dumps([schema, value, MAX_PATTERN_BYTES], default=plain).encode()
    except RecursionError:
        raise TooMuchToCheck("it is nested too deeply") from None
    except TypeError as error:
        raise NotJson(f"JSON cannot hold it: {error}") from None


def _answer(output: bytes, *, late: bool = False) -> str | None:
    first, _, reason = output.partition(b"\n")
    match first:
        case b"fits":
            return None
        case b"differs":
            return _reason(reason)
        case _ if late:
            hint = "try again when less is under way"
            raise MachineBusy("a check had to wait too long for a processor", hint=hint)
        case _:
            raise TooMuchToCheck("it takes too many comparisons")


def _reason(written: bytes) -> str:
    with contextlib.suppress(ValueError):
        reason: Any = json.loads(written)
        if isinstance(reason, str):
            return reason
    return _PLAIN_REASON


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}
