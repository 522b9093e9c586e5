"""The process outside the sandbox: starts the init process inside, and limits time and memory.

Started by `weft.reasoning.code.sandbox`; runs as long as the program, and ends all its processes.
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
from weft.reasoning.code.sandbox.jail.inside import run_init
from weft.reasoning.code.sandbox.jail.kernel import PR_SET_PDEATHSIG, prctl
from weft.reasoning.code.sandbox.request import SandboxRequest

_POLL_S: Final = 0.05
"""The interval of measurements: the kernel has no event for the memory of several processes."""
_SIGNALS: Final = {signal.SIGCHLD, signal.SIGTERM}


def main() -> None:
    """Run the request on standard input, and write the result to its `report`."""
    request = SandboxRequest.from_json(sys.stdin.buffer.read())
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        result = _run(request)
    except Exception as error:  # noqa: BLE001 - weft must receive every error
        result = {"refused": f"{type(error).__name__}: {error}"}
    os.write(request.report, json.dumps(result).encode())


def _run(request: SandboxRequest) -> Mapping[str, Any]:
    enclosure = enclose()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # after `enclose`, which may undo it
    if os.getppid() != request.parent:
        return {"refused": "the process that started the keeper is gone"}
    reader, writer = os.pipe()
    wait, go = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(go)
        os.close(reader)
        os.close(request.report)
        run_init(request, enclosure, wait, writer)
    os.close(wait)
    os.close(writer)
    begun = time.monotonic()
    os.write(go, b"!")
    try:
        cause, peak_bytes = _watch(first, request, begun)
    finally:
        with suppress(ProcessLookupError):
            os.kill(first, signal.SIGKILL)
        _reap(first)
    result = _received(reader)
    if "processes" in enclosure.missing and "started" in result:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(result["started"], signal.SIGKILL)
    peak_bytes = max(peak_bytes, result.get("peak_bytes", 0))
    return {**result, "cause": cause, "seconds": time.monotonic() - begun, "peak_bytes": peak_bytes}


def _watch(first: int, request: SandboxRequest, begun: float) -> tuple[str, int]:
    """Wait for the end of `first`, or for a limit: the cause (empty: it ended), and peak memory."""
    peak_bytes = 0
    end = begun + request.limits.wall_s
    while True:
        left = end - time.monotonic()
        received = signal.sigtimedwait(_SIGNALS, max(0.0, min(_POLL_S, left)))
        if received is not None and received.si_signo == signal.SIGTERM:
            return "stopped", peak_bytes
        if os.waitid(os.P_PID, first, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return "", peak_bytes
        used = memory_below(first)
        peak_bytes = max(peak_bytes, used)
        if used > request.limits.memory_bytes:
            return "memory", peak_bytes
        if time.monotonic() >= end:
            return "time", peak_bytes


def _reap(first: int) -> None:
    """Wait for the end of `first`, which follows that of all processes inside."""
    with suppress(ChildProcessError):
        os.waitpid(first, 0)


def _received(reader: int) -> dict[str, Any]:
    with open(reader, "rb") as messages:
        result: dict[str, Any] = {}
        for line in messages:
            result.update(json.loads(line))
        return result
