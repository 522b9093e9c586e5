"""One engine process behind its guard, as the event loop sees it.

Knows the guard's words; does not know what the engine serves or when it is healthy.
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
_LAST_WORDS_S = 2.0
_GUARD_S = 45.0
_LINE_BYTES = 64 * 1024


class GuardedProcess:
    """An engine under guard. When `ended` is set, no process of it is left.

    `code` is then the engine's exit status, negative for a signal; None when the guard itself was
    killed. `engine` is the number of the engine's process.
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

        Raises: `StartError` when not even the guard can be started.
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
        order = {"argv": list(argv), "grace_s": _ABANDONED_GRACE_S}
        self._say(json.dumps(order))

    def stop(self, grace_s: float) -> None:
        """Ask the engine to end within `grace_s`; then it is killed."""
        self._say(f"stop {grace_s:.3f}")

    def kill(self) -> None:
        """Kill everything now."""
        self._say("kill")

    async def close(self) -> None:
        """Kill what is left, and return when nothing is. Carries on when cancelled meanwhile."""
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

    def _say(self, text: str) -> None:
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
            )  # the guard alone holds it: it has ended
            if self.code is None:
                await self._clean_up_for(process)
            await asyncio.wait({lines, exits}, timeout=_LAST_WORDS_S)
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
        """The guard was killed: end what it guarded."""
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
    """Give `take` every line until the stream ends; overlong ones in pieces."""
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
