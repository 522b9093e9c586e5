"""The keeper's process, from its start to its end, and the pipes that it writes to."""

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
    """What is written to `writer`, in `held`: at most `most_bytes`, then `flooded` is set.

    Used in a `with` block, read by hand: a process that kept the writing end and outlives all
    others can then never keep us waiting for the end of the stream. `on_flood` is called once.
    """

    def __init__(self, most_bytes: int) -> None:
        self.held = bytearray()
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
        """The process has its copy of the writing end: let go of ours."""
        if self._writer_open:
            self._writer_open = False
            os.close(self.writer)

    def drain(self) -> None:
        """Take what has been written already."""
        while self._read():
            pass

    def _read(self) -> bool:
        if self.flooded:
            return False
        try:
            piece = os.read(self._reader, _PIECE_BYTES)
        except BlockingIOError:
            return False
        self.held += piece[: self._most_bytes - len(self.held) + 1]
        if len(self.held) > self._most_bytes:
            del self.held[self._most_bytes :]
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
"""How long the keeper may take beyond the program's time, and to end when it is told to."""
_REPORT_BYTES: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class KeeperReport:
    """What the keeper says, and what the program printed and complained.

    `flooded`: more than may be printed; `late`: the keeper itself took too long.
    """

    said: Mapping[str, Any]
    printed: bytes
    complained: bytes
    flooded: bool
    late: bool


async def keep(order: SandboxRequest) -> KeeperReport:
    """Have `order` done. When this returns, raises or is cancelled, the keeper has ended.

    Raises: `SandboxError` when no process can be started.
    """
    most = order.limits.output_bytes
    with (
        PipeCapture(most) as printed,
        PipeCapture(most) as complained,
        PipeCapture(_REPORT_BYTES) as report,
    ):
        keeper = await _started(order, printed, complained, report)
        printed.on_flood = complained.on_flood = lambda: _terminate(keeper)
        late = False
        try:
            async with asyncio.timeout(order.limits.wall_s + _GRACE_S):
                await keeper.wait()
        except TimeoutError:
            late = True
        finally:
            await _end(keeper)
        for catch in (printed, complained, report):
            catch.drain()
        flooded = printed.flooded or complained.flooded
        said = _read(bytes(report.held))
        return KeeperReport(said, bytes(printed.held), bytes(complained.held), flooded, late)


async def _started(
    order: SandboxRequest, printed: PipeCapture, complained: PipeCapture, report: PipeCapture
) -> Process:
    whole = replace(order, parent=os.getpid(), report=report.writer)
    with TemporaryFile() as orders:
        orders.write(whole.as_json())
        orders.seek(0)
        try:
            keeper = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", "-B", "-c", _START, _ROOT),
                stdin=orders,
                stdout=printed.writer,
                stderr=complained.writer,
                pass_fds=(report.writer,),
                start_new_session=True,
                env={},
                cwd="/",
            )
        except OSError as error:
            raise SandboxError(f"no process could be started: {error}", retryable=True) from error
    for catch in (printed, complained, report):
        catch.release()
    return keeper


async def _end(keeper: Process) -> None:
    """See to it that the keeper ends; it ends everything inside before."""
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
        said = json.loads(report)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
