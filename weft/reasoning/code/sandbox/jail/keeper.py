"""The process outside: it starts the first process inside, watches the clock and the memory.

Started by `weft.reasoning.code.sandbox`; runs as long as the program, and ends all of it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from weft.reasoning.code.sandbox.jail.enclosure import enclose, memory_below
from weft.reasoning.code.sandbox.jail.inside import live
from weft.reasoning.code.sandbox.jail.kernel import PR_SET_PDEATHSIG, prctl
from weft.reasoning.code.sandbox.request import SandboxRequest

_LOOK_S: Final = 0.05
"""How often memory is looked at: the kernel has no event for the sum over several processes."""
_HEARD: Final = {signal.SIGCHLD, signal.SIGTERM}


def main() -> None:
    """Do what the order on standard input says, and write what came of it to its `report`."""
    order = SandboxRequest.from_json(sys.stdin.buffer.read())
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    try:
        found = _kept(order)
    except Exception as error:  # noqa: BLE001 - whatever it is, weft has to hear of it
        found = {"refused": f"{type(error).__name__}: {error}"}
    os.write(order.report, json.dumps(found).encode())


def _kept(order: SandboxRequest) -> Mapping[str, Any]:
    enclosure = enclose()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # after `enclose`, which may undo it
    if os.getppid() != order.parent:
        return {"refused": "whoever asked for this is gone"}
    hear, tell = os.pipe()
    wait, go = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(go)
        os.close(hear)
        os.close(order.report)
        live(order, enclosure, wait, tell)
    os.close(wait)
    os.close(tell)
    begun = time.monotonic()
    os.write(go, b"!")
    try:
        cause, peak_bytes = _watched(first, order, begun)
    finally:
        with suppress(ProcessLookupError):
            os.kill(first, signal.SIGKILL)
        _bury(first)
    told = _told(hear)
    if "processes" in enclosure.missing and "started" in told:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(told["started"], signal.SIGKILL)
    peak_bytes = max(peak_bytes, told.get("peak_bytes", 0))
    return {**told, "cause": cause, "seconds": time.monotonic() - begun, "peak_bytes": peak_bytes}


def _watched(first: int, order: SandboxRequest, begun: float) -> tuple[str, int]:
    """Until `first` ends or has to: why it has to (empty: it ended), and the most memory seen."""
    peak_bytes = 0
    end = begun + order.limits.wall_s
    while True:
        left = end - time.monotonic()
        heard = signal.sigtimedwait(_HEARD, max(0.0, min(_LOOK_S, left)))
        if heard is not None and heard.si_signo == signal.SIGTERM:
            return "stopped", peak_bytes
        if os.waitid(os.P_PID, first, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return "", peak_bytes
        used = memory_below(first)
        peak_bytes = max(peak_bytes, used)
        if used > order.limits.memory_bytes:
            return "memory", peak_bytes
        if time.monotonic() >= end:
            return "time", peak_bytes


def _bury(first: int) -> None:
    """Wait for the end of `first`, which comes after that of all processes inside."""
    with suppress(ChildProcessError):
        os.waitpid(first, 0)


def _told(hear: int) -> dict[str, Any]:
    with open(hear, "rb") as messages:
        told: dict[str, Any] = {}
        for line in messages:
            told.update(json.loads(line))
        return told
