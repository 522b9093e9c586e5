"""Starts and ends the keeper process, and captures its pipes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Final

from weft.core.errors import SandboxError
from weft.reasoning.code.sandbox.request import SandboxRequest

_PIECE_BYTES: Final = 64 * 1024


class PipeCapture:
    """Captures what is written to `writer` in `data`: at most `most_bytes`, then sets `flooded`.

    Used in a `with` block, and read without blocking: a process that inherited the writing end and
    outlives the others cannot delay the end of the stream. `on_flood` is called once.
    """

    def __init__(self, most_bytes: int) -> None:
        self.data = bytearray()
        self.flooded = False
        self.on_flood: Callable[[], None] | None = None
        self._most_bytes = most_bytes
        self._loop = asyncio.get_running_loop()
        self._reader, self.writer = os.pipe()
        self._writer_open = True
        os.set_blocking(self._reader, False)
        self._loop.add_reader(self._reader, self._read)

    def __enter__(self) -> PipeCapture:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.release()
        self._loop.remove_reader(self._reader)
        os.close(self._reader)

    def release(self) -> None:
        """Close our copy of the writing end, once the process has its own."""
        if self._writer_open:
            self._writer_open = False
            os.close(self.writer)

    def drain(self) -> None:
        """Read what has already been written."""
        while self._read():
            pass

    def _read(self) -> bool:
        if self.flooded:
            return False
        try:
            piece = os.read(self._reader, _PIECE_BYTES)
        except BlockingIOError:
            return False
        self.data += piece[: self._most_bytes - len(self.data) + 1]
        if len(self.data) > self._most_bytes:
            del self.data[self._most_bytes :]
            self.flooded = True
            if self.on_flood is not None:
                self.on_flood()
        if not piece or self.flooded:
            self._loop.remove_reader(self._reader)
            return False
        return True


_START: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from weft.reasoning.code.sandbox.jail.keeper import main; main()"
)
_ROOT: Final = str(Path(__file__).parents[4])
_GRACE_S: Final = 5.0
"""How long the keeper may take beyond the program's time, and to end after SIGTERM."""
_REPORT_BYTES: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class KeeperReport:
    """The keeper's result, and the output of the program.

    `flooded`: the output exceeds its limit; `late`: the keeper itself took too long.
    """

    result: Mapping[str, Any]
    stdout: bytes
    stderr: bytes
    flooded: bool
    late: bool


async def keep(request: SandboxRequest) -> KeeperReport:
    """Run `request` in a keeper process, which has ended when this returns, raises or is cancelled.

    Raises: `SandboxError` when no process can be started.
    """
    most = request.limits.output_bytes
    with (
        PipeCapture(most) as stdout,
        PipeCapture(most) as stderr,
        PipeCapture(_REPORT_BYTES) as report,
    ):
        keeper = await _started(request, stdout, stderr, report)
        stdout.on_flood = stderr.on_flood = lambda: _terminate(keeper)
        late = False
        try:
            async with asyncio.timeout(request.limits.wall_s + _GRACE_S):
                await keeper.wait()
        except TimeoutError:
            late = True
        finally:
            await _end(keeper)
        for catch in (stdout, stderr, report):
            catch.drain()
        flooded = stdout.flooded or stderr.flooded
        result = _read(bytes(report.data))
        return KeeperReport(result, bytes(stdout.data), bytes(stderr.data), flooded, late)


async def _started(
    request: SandboxRequest, stdout: PipeCapture, stderr: PipeCapture, report: PipeCapture
) -> Process:
    whole = replace(request, parent=os.getpid(), report=report.writer)
    with TemporaryFile() as file:
        file.write(whole.as_json())
        file.seek(0)
        try:
            keeper = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", "-B", "-c", _START, _ROOT),
                stdin=file,
                stdout=stdout.writer,
                stderr=stderr.writer,
                pass_fds=(report.writer,),
                start_new_session=True,
                env={},
                cwd="/",
            )
        except OSError as error:
            raise SandboxError(f"no process could be started: {error}", retryable=True) from error
    for catch in (stdout, stderr, report):
        catch.release()
    return keeper


async def _end(keeper: Process) -> None:
    """Terminate the keeper, which ends all processes inside first."""
    if keeper.returncode is not None:
        return
    _terminate(keeper)
    try:
        async with asyncio.timeout(_GRACE_S):
            await keeper.wait()
    except TimeoutError:
        pass
    finally:
        if keeper.returncode is None:
            with suppress(ProcessLookupError):
                keeper.kill()


def _terminate(keeper: Process) -> None:
    with suppress(ProcessLookupError):
        keeper.terminate()


def _read(report: bytes) -> Mapping[str, Any]:
    try:
        result = json.loads(report)
    except ValueError:
        return {}
    return result if isinstance(result, dict) else {}
