"""The keeper's process, from its start to its end. Knows pipes and signals, and no verdicts."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final

from weft.core.errors import SandboxError
from weft.reasoning.code.sandbox.catch import Catch
from weft.reasoning.code.sandbox.jail.order import Order

_START: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from weft.reasoning.code.sandbox.jail.keeper import main; main()"
)
_ROOT: Final = str(Path(__file__).parents[4])
_GRACE_S: Final = 5.0
"""How long the keeper may take beyond the program's time, and to end when it is told to."""
_REPORT_BYTES: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class Kept:
    """What the keeper says, and what the program printed and complained.

    `flooded`: more than may be printed; `late`: the keeper itself took too long.
    """

    said: Mapping[str, Any]
    printed: bytes
    complained: bytes
    flooded: bool
    late: bool


async def keep(order: Order) -> Kept:
    """Have `order` done. When this returns, raises or is cancelled, the keeper has ended.

    Raises: `SandboxError` when no process can be started.
    """
    most = order.limits.output_bytes
    with Catch(most) as printed, Catch(most) as complained, Catch(_REPORT_BYTES) as report:
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
        return Kept(said, bytes(printed.held), bytes(complained.held), flooded, late)


async def _started(order: Order, printed: Catch, complained: Catch, report: Catch) -> Process:
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
