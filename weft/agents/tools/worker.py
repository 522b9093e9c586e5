"""The worker program of an isolated tool: set limits, import, call, reply, wait.

Started by path with `python -I worker.py FD`; reads one request from standard input and writes
messages, one JSON object a line, to the file descriptor FD.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

_PR_SET_PDEATHSIG: Final = 1
_OVER: Final = {errno.ENOMEM: "memory", errno.EFBIG: "file"}


class _ReplyPipe:
    """The pipe for messages to the parent, usable from several threads."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        os.set_inheritable(fd, False)

    def send(self, message: bytes) -> None:
        """Write one message."""
        with self._lock:
            left = memoryview(message + b"\n")
            while left:
                left = left[os.write(self._fd, left) :]

    def wait_for_the_end(self) -> None:
        """Wait until the parent kills this process group, or is gone.

        The group must not lose its leader before: its number could be reused.
        """
        poll = select.poll()
        poll.register(self._fd, 0)
        poll.poll()


def main() -> None:
    """Serve one request."""
    channel = _ReplyPipe(int(sys.argv[1]))
    header, _, arguments = sys.stdin.buffer.read().partition(b"\n")
    request = json.loads(header)
    _die_with(request["parent"])
    _limit(request)
    sys.path[:] = request["path"]
    own = os.getpid()
    reply = _reply(request, arguments, channel)
    if os.getpid() != own:  # a fork of the tool returned here
        os._exit(0)
    with suppress(OSError, ValueError):  # the tool may have closed them
        sys.stdout.flush()
        sys.stderr.flush()
    channel.send(reply)
    channel.wait_for_the_end()


def _die_with(parent: int) -> None:
    """End with the parent, even when that is killed with SIGKILL, on Linux."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _limit(request: Mapping[str, Any]) -> None:
    limits = {
        resource.RLIMIT_AS: request["memory_bytes"],
        resource.RLIMIT_FSIZE: request["file_bytes"],
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: request["cpu_s"],
    }
    for limit, most in limits.items():
        if most is not None:
            # The hard limit of processor time kills with SIGKILL, the soft one with SIGXCPU.
            hard = most + 1 if limit == resource.RLIMIT_CPU else most
            with suppress(ValueError, OSError):  # a stricter limit applies
                resource.setrlimit(limit, (most, hard))


def _reply(request: Mapping[str, Any], arguments: bytes, channel: _ReplyPipe) -> bytes:
    try:
        return _call(request, arguments, channel)
    except MemoryError:
        return b'{"limit": "memory"}'
    except BaseException as error:  # noqa: BLE001 - every error becomes a reply
        over = _OVER.get(error.errno or 0) if isinstance(error, OSError) else None
        message = {"limit": over} if over else _error_message(request["name"], error)
        return json.dumps(message).encode()


def _error_message(name: str, error: BaseException) -> Mapping[str, Any]:
    from dataclasses import asdict

    from weft.agents.tools.problem import as_tool_error

    failure = as_tool_error(name, error)
    return {
        "error": type(failure).__name__,
        "message": failure.message,
        "hint": failure.hint,
        "retryable": failure.retryable,
        "cause": None if failure.cause is None else asdict(failure.cause),
    }


def _call(request: Mapping[str, Any], arguments: bytes, channel: _ReplyPipe) -> bytes:
    from pydantic_core import to_json

    from weft.agents.tools.context import ToolContext
    from weft.agents.tools.module import find
    from weft.agents.tools.signature import signature_of
    from weft.core.call_context import idempotency_key, keyed

    name = request["name"]
    found = find(request["tool"])
    function = getattr(found, "function", found)  # undecorated if `tool` was called on it
    signature = signature_of(function, keyed=request["keyed"])
    values = signature.parameters.decode(name, arguments)
    if signature.context is not None:
        values[signature.context] = ToolContext(
            lambda text: channel.send(to_json({"log": text})),
            deadline_s=time.monotonic() + request["timeout_s"],
        )
    with keyed(request["key"]):
        if signature.key is not None:
            values[signature.key] = idempotency_key()
        value = function(**values)
        if asyncio.iscoroutinefunction(function):
            value = asyncio.run(value)
    result = signature.result.plain(name, value, request["max_bytes"])
    return to_json({"result": result}, inf_nan_mode="constants")


if __name__ == "__main__":
    main()
