"""Checks that may take long, each in a process that ends at a limit of processor time.

What a check needs goes through its stdin; the environment, with its secrets, does not.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from weft.core.errors import MachineBusy
from weft.validation.bounds import MAX_PATTERN_BYTES, TIME_LIMIT_S, WAIT_LIMIT_S, TooMuchToCheck
from weft.validation.size import NotJson, plain

_COMMAND: Final = (sys.executable, "-P", str(Path(__file__).with_name("check.py")))
_KEPT: Final = ("PATH", "PYTHONPATH", "PYTHONHOME", "SYSTEMROOT", "PYTHONDONTWRITEBYTECODE")
_PLAIN_REASON: Final = "it does not fit the schema, which is too large to say where"


def check_apart(
    schema: object, value: object, limit_s: float = TIME_LIMIT_S, wait_s: float = WAIT_LIMIT_S
) -> str | None:
    """Why `value` does not fit, or None. Blocks.

    Raises: `TooMuchToCheck` after `limit_s` of processor time, `MachineBusy` where it has not had
    them within `wait_s`, `NotJson`.
    """
    question = _question(schema, value)
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            (*_COMMAND, str(limit_s)),
            input=question,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            timeout=wait_s,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return _answer(late.stdout or b"", late=True)
    return _answer(done.stdout)


async def check_apart_async(
    schema: object, value: object, limit_s: float = TIME_LIMIT_S, wait_s: float = WAIT_LIMIT_S
) -> str | None:
    """The same without blocking. Cancelling the caller kills the process."""
    question = _question(schema, value)
    process = await asyncio.create_subprocess_exec(
        *_COMMAND,
        str(limit_s),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_environment(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    said = bytearray()
    try:
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(wait_s) as waiting:
                process.stdin.write(question)
                await process.stdin.drain()
                process.stdin.close()
                while piece := await process.stdout.read(64 * 1024):
                    said += piece
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return _answer(bytes(said), late=waiting.expired())


def _question(schema: object, value: object) -> bytes:
    """Raises: `NotJson`, `TooMuchToCheck`."""
    try:
        return json.dumps([schema, value, MAX_PATTERN_BYTES], default=plain).encode()
    except RecursionError:
        raise TooMuchToCheck("it is nested too deeply") from None
    except TypeError as error:
        raise NotJson(f"JSON cannot hold it: {error}") from None


def _answer(said: bytes, *, late: bool = False) -> str | None:
    first, _, reason = said.partition(b"\n")
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
    return {name: os.environ[name] for name in _KEPT if name in os.environ}
