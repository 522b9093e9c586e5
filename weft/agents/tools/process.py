"""Runs one call of a tool in a subprocess, and kills it with all its descendants.

Pipes are read without a transport: a process that inherited the writing end and outlives its parent
cannot delay the end of the call. The other end is `weft.agents.tools.worker`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json, to_json

from weft.agents.process_tree import environment, kill_group, new_mark, signal_name
from weft.agents.tools.context import LogSink
from weft.agents.tools.function import Isolation, Tool
from weft.agents.tools.problem import time_limit
from weft.core.call_context import current_key
from weft.core.errors import (
    NotDone,
    ToolArgumentError,
    ToolError,
    ToolLimitError,
    ToolRaised,
    ToolResultError,
)
from weft.core.foreign import LONGEST_DELAY_S, ErrorCause

_PIECE_BYTES: Final = 64 * 1024


class Pipe:
    """A pipe. `received` gets every piece; `flooded` is called once, beyond `max_bytes`.

    Used in a `with` block. `writer` is the file descriptor for the subprocess.
    """

    def __init__(
        self, max_bytes: int, received: Callable[[bytes], None], flooded: Callable[[], None]
    ) -> None:
        self._left = max_bytes
        self._received = received
        self._flooded = flooded
        self._loop = asyncio.get_running_loop()
        self._reader, self.writer = os.pipe()
        self._writer_open = True
        self._reading = True
        os.set_blocking(self._reader, False)
        self._loop.add_reader(self._reader, self._read)

    def __enter__(self) -> Pipe:
        return self

    def started(self) -> None:
        """Close our copy of the writing end, once the subprocess has its own."""
        if self._writer_open:
            self._writer_open = False
            os.close(self.writer)

    def drain(self) -> None:
        """Read what has already been written."""
        while self._reading and self._read():
            pass

    def _read(self) -> bool:
        try:
            piece = os.read(self._reader, _PIECE_BYTES)
        except BlockingIOError:
            return False
        self._left -= len(piece)
        if piece and self._left >= 0:
            self._received(piece)
            return True
        self._stop()
        if piece:
            self._flooded()
        return False

    def _stop(self) -> None:
        self._reading = False
        self._loop.remove_reader(self._reader)

    def __exit__(self, *_: object) -> None:
        self.started()
        self._stop()
        os.close(self._reader)


_WORKER: Final = str(Path(__file__).with_name("worker.py"))
_SHOWN_BYTES: Final = 8 * 1024
_FAILURES: Final[Mapping[str, type[ToolError]]] = {
    kind.__name__: kind for kind in (NotDone, ToolArgumentError, ToolResultError, ToolLimitError)
}


async def in_process(tool: Tool[..., Any], arguments: bytes, log: LogSink, max_bytes: int) -> Any:
    """Call an isolated tool with checked `arguments` (JSON); returns plain data.

    When this returns, raises or is cancelled, the process and its descendants are gone. `log`
    receives the tool's log lines, and at the end what it printed.

    Raises: `ToolLimitError` naming the limit, `ToolResultError`, or `ToolRaised` otherwise.
    """
    name, isolation = tool.spec.name, tool.isolation
    assert isolation is not None
    request = {
        "name": name,
        "tool": tool.import_path,
        "path": sys.path,
        "parent": os.getpid(),
        "max_bytes": max_bytes,
        "keyed": tool.signature.key is not None,
        "key": current_key(),
        **asdict(isolation),
    }
    async with time_limit(name, isolation.timeout_s):
        call = _SubprocessCall(name, isolation, log)
        return await call.run(to_json(request) + b"\n" + arguments)


class _SubprocessCall:
    """A call while its process runs. `_end`: its result, or its error."""

    def __init__(self, name: str, isolation: Isolation, log: LogSink) -> None:
        self._name = name
        self._isolation = isolation
        self._log = log
        self._mark = new_mark()
        self._line = bytearray()
        self._printed = bytearray()
        self._end: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def run(self, request: bytes) -> Any:
        limit = self._isolation.output_bytes
        with (
            Pipe(limit, self._printed.extend, lambda: self._flooded("printed")) as prints,
            Pipe(limit, self._receive, lambda: self._flooded("returned or logged")) as replies,
        ):
            process = await self._start(prints.writer, replies.writer)
            exited = asyncio.ensure_future(process.wait())
            try:
                prints.started()
                replies.started()
                _feed(process, request)
                await asyncio.wait({self._end, exited}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                kill_group(process.pid, self._mark)
                code = await exited
            replies.drain()
            prints.drain()
        return self._outcome(code)

    async def _start(self, prints: int, replies: int) -> Process:
        try:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", _WORKER, str(replies)),
                stdin=PIPE,
                stdout=prints,
                stderr=prints,
                pass_fds=(replies,),
                start_new_session=True,
                env=environment(self._mark, *self._isolation.env),
            )
        except OSError as error:
            message = f"{self._name}: no process could be started: {error}"
            raise ToolLimitError(message, retryable=True) from error

    def _receive(self, piece: bytes) -> None:
        self._line += piece
        if b"\n" in piece:
            *lines, self._line = self._line.split(b"\n")
            for line in lines:
                self._handle(line)

    def _handle(self, line: bytearray) -> None:
        """Handle one message of the worker: a log line, or the end of the call."""
        try:
            message = from_json(bytes(line))
        except ValueError:
            message = None
        match message:
            case {"log": str(text)}:
                self._log(text)
            case {"result": result}:
                self._finish(result)
            case {"limit": str(limit)}:
                self._finish(None, self._over(limit))
            case {"error": str(kind), "message": str(text), "hint": hint, "retryable": again}:
                failure = _FAILURES.get(kind, ToolRaised)(text, hint=hint, retryable=bool(again))
                failure.cause = cause = _cause(message.get("cause"))
                failure.retry_after_s = None if cause is None else cause.retry_after_s
                self._finish(None, failure)
            case _:
                self._finish(None, ToolResultError(f"{self._name} wrote into its reply"))

    def _finish(self, result: Any, error: ToolError | None = None) -> None:
        if not self._end.done():
            self._end.set_result((result, error))

    def _flooded(self, did: str) -> None:
        most = self._isolation.output_bytes
        self._finish(None, ToolLimitError(f"{self._name} {did} more than its {most:,} bytes"))

    def _over(self, limit: str) -> ToolLimitError:
        most = self._isolation.file_bytes if limit == "file" else self._isolation.memory_bytes
        what = "wrote a file of more than" if limit == "file" else "needed more memory than"
        return ToolLimitError(f"{self._name} {what} its {most:,} bytes")

    def _outcome(self, code: int) -> Any:
        printed = self._printed[-_SHOWN_BYTES:].decode("utf-8", "replace").strip()
        if printed:
            self._log(printed)
        if not self._end.done():
            self._finish(None, self._died(code, printed))
        result, error = self._end.result()
        if error is not None:
            raise error
        return result

    def _died(self, code: int, printed: str) -> ToolError:
        if code == -signal.SIGXCPU:
            most = self._isolation.cpu_s
            return ToolLimitError(f"{self._name} used more than its {most} s of processor time")
        if code == -signal.SIGKILL:
            why = "the system was out of memory, or the tool ignored its limit of processor time"
            return ToolLimitError(f"{self._name} was killed", hint=why)
        how = f"by {signal_name(-code)}" if code < 0 else f"with exit status {code}"
        hint = printed.splitlines()[-1] if printed else None
        return ToolRaised(f"{self._name} ended its process {how}, without a result", hint=hint)


def _feed(process: Process, request: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(request)
    process.stdin.close()


def _cause(given: object) -> ErrorCause | None:
    """The cause that a worker reports, as far as it has the right form: its tool could forge it."""
    match given:
        case {"classes": [*classes], "status": int() | None as status, "retry_after_s": after_s}:
            wait = isinstance(after_s, int | float) and 0 <= after_s <= LONGEST_DELAY_S
            return ErrorCause(tuple(map(str, classes)), status, float(after_s) if wait else None)
    return None
