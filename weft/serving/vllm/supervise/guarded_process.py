"""One engine process behind its guard, for the event loop.

Speaks the guard's protocol. What the engine serves, and its health, are not its concern.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from weft.core.errors import StartError
from weft.serving.vllm.supervise.processes import MARK, Mark, end, marked

_GUARD = str(Path(__file__).with_name("guard.py"))
_ABANDONED_GRACE_S = 5.0
_LAST_LINES_S = 2.0
_GUARD_S = 45.0
_LINE_BYTES = 64 * 1024


class GuardedProcess:
    """An engine with its guard. When `ended` is set, none of its processes is left.

    `code` is then the engine's exit status, negative for a signal; None when the guard itself was
    killed. `engine` is the engine's process id.
    """

    def __init__(self, mark: Mark, replica: int, on_line: Callable[[str], None]) -> None:
        self.engine: int | None = None
        self.code: int | None = None
        self.ended = asyncio.Event()
        self._mark = mark
        self._replica = replica
        self._on_line = on_line
        self._process: Process | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Start the guard, and through it the engine. `env` is added to the environment.

        Raises: `StartError` when the guard cannot be started.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", _GUARD),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
                env={**os.environ, **env, **self._marks()},
            )
        except OSError as error:
            raise StartError(
                f"no process can be started: {error}", stage_reached="spawn"
            ) from error
        self._process = process
        self._watching = asyncio.create_task(self._watch(process))
        command = {"argv": list(argv), "grace_s": _ABANDONED_GRACE_S}
        self._send(json.dumps(command))

    def stop(self, grace_s: float) -> None:
        """Ask the engine to end within `grace_s`; then it is killed."""
        self._send(f"stop {grace_s:.3f}")

    def kill(self) -> None:
        """Kill everything now."""
        self._send("kill")

    async def close(self) -> None:
        """Kill all processes, and return when none is left, even if cancelled meanwhile."""
        self.kill()
        if self._watching is None:
            return
        cancelled = False
        while not self._watching.done():
            try:
                _, late = await asyncio.wait({self._watching}, timeout=_GUARD_S)
            except asyncio.CancelledError:
                cancelled = True
                continue
            if late and self._process is not None:  # the guard itself hangs
                self._process.kill()
        self._watching.result()
        if cancelled:
            raise asyncio.CancelledError

    def _marks(self) -> dict[str, str]:
        # Processes that rename themselves would overwrite their environment, and so the mark.
        return {MARK: self._mark.text(), "WEFT_REPLICA": str(self._replica), "SPT_NOENV": "1"}

    def _send(self, text: str) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            return
        with suppress(OSError, RuntimeError):
            process.stdin.write(text.encode() + b"\n")

    async def _watch(self, process: Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = asyncio.create_task(each_line(process.stderr, self._on_line))
        exits = asyncio.create_task(process.wait())
        try:
            await each_line(
                process.stdout, self._on_guard_line
            )  # only the guard has it open, so the guard has ended
            if self.code is None:
                await self._clean_up_for(process)
            await asyncio.wait({lines, exits}, timeout=_LAST_LINES_S)
        finally:
            lines.cancel()
            exits.cancel()
            if process.stdin is not None:
                process.stdin.close()
            self.ended.set()

    def _on_guard_line(self, line: str) -> None:
        match line.split():
            case ["engine", number]:
                self.engine = int(number)
            case ["exited", code]:
                self.code = int(code)

    async def _clean_up_for(self, guard: Process) -> None:
        """End the processes of a guard that was killed."""
        for group in (self.engine, guard.pid):
            if group is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signal.SIGKILL)
        await asyncio.to_thread(self._end_marked)

    def _end_marked(self) -> None:
        replica = str(self._replica)
        end(
            process
            for process, mark in marked()
            if mark == self._mark and process.environ().get("WEFT_REPLICA") == replica
        )


async def each_line(stream: asyncio.StreamReader, take: Callable[[str], None]) -> None:
    """Call `take` with every line until the stream ends; overlong lines come in pieces."""
    rest = b""
    while data := await stream.read(_LINE_BYTES):
        *lines, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
        if len(rest) > _LINE_BYTES:
            lines, rest = [*lines, rest], b""
        for line in lines:
            if line:
                take(line.decode("utf-8", "replace"))
    if rest:
        take(rest.decode("utf-8", "replace"))
