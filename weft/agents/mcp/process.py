"""The process of an MCP server: started, written to, read, and ended with its descendants."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from weft.agents.process_tree import VARIABLE, kill_group, new_mark, signal_name
from weft.agents.process_tree import environment as process_environment

_CHUNK: Final = 64 * 1024
_TAIL_BYTES: Final = 4 * 1024
_GRACE_S: Final = 2.0
_LAST_OUTPUT_S: Final = 1.0


class ServerProcess:
    """A running process, the leader of its own process group.

    `stderr_tail` explains its end. `exited` is done when it has ended, its descendants are killed,
    and its output can be read.
    """

    def __init__(self, process: Process, mark: str, stdout: _Output, stderr: _Output) -> None:
        self._process = process
        self._mark = mark
        self._stdout = stdout
        self._stderr = stderr
        self._tail = bytearray()
        self._stderr_task = asyncio.create_task(self._read_stderr())
        self.exited = asyncio.create_task(self._watch())

    @classmethod
    async def start(
        cls, command: Sequence[str], folder: Path | None, environment: Mapping[str, str]
    ) -> ServerProcess:
        """Start it. Raises: `OSError` or `ValueError` when that fails."""
        outputs: list[_Output] = []
        mark = new_mark()
        inherited = process_environment(mark, "USER", "LOGNAME", "SHELL")
        try:
            for _ in range(2):
                outputs.append(await _Output.open())  # noqa: PERF401 - opened ones get closed
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=outputs[0].writer,
                stderr=outputs[1].writer,
                cwd=folder,
                env=inherited | dict(environment) | {VARIABLE: mark},
                start_new_session=True,
            )
        except BaseException:
            for output in outputs:
                output.close()
            raise
        finally:
            for output in outputs:
                os.close(output.writer)
        return cls(process, mark, *outputs)

    async def read(self) -> bytes:
        """The next piece of its stdout; empty at the end."""
        return await self._stdout.reader.read(_CHUNK)

    async def write(self, data: bytes) -> None:
        """Write to its stdin. Raises: `OSError` when it is closed."""
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        await self._process.stdin.drain()

    async def end(self) -> None:
        """Close its stdin, then terminate it, then kill it, with all descendants.

        A cancellation kills it at once.
        """
        assert self._process.stdin is not None
        discard_task = asyncio.create_task(self._discard())  # a full pipe would block it
        try:
            self._process.stdin.close()
            if not await self._has_exited():
                self._signal(signal.SIGTERM)
                if not await self._has_exited():
                    self.kill()
                    await self._has_exited()
        finally:
            self.kill()
            if self._process.stdin.transport.get_write_buffer_size():
                self._process.stdin.transport.abort()
            self._stdout.close()
            self._stderr.close()
            discard_task.cancel()

    def kill(self) -> None:
        """Kill it and all descendants."""
        if not self.exited.done():
            kill_group(self._process.pid, self._mark)

    @property
    def stderr_tail(self) -> str:
        """The last lines of its stderr."""
        return self._tail.decode("utf-8", "replace").strip()

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        code = self._process.returncode
        if code is None:
            return "closed its output"
        return f"was ended by {signal_name(-code)}" if code < 0 else f"ended with status {code}"

    async def _has_exited(self) -> bool:
        done, _ = await asyncio.wait({self.exited}, timeout=_GRACE_S)
        return bool(done)

    def _signal(self, number: signal.Signals) -> None:
        if not self.exited.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    async def _watch(self) -> None:
        await self._process.wait()
        kill_group(self._process.pid, self._mark)
        for output in (self._stdout, self._stderr):  # a descendant may keep them open for ever
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_OUTPUT_S):
                    await output.ended.wait()
            output.close()

    async def _read_stderr(self) -> None:
        while piece := await self._stderr.reader.read(_CHUNK):
            self._tail += piece
            del self._tail[:-_TAIL_BYTES]

    async def _discard(self) -> None:
        while await self.read():
            continue


class _Output(asyncio.StreamReaderProtocol):
    """A pipe for a process's output. The starter of the process closes `writer`."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader(_CHUNK)
        super().__init__(self.reader)
        self.ended = asyncio.Event()
        self.writer = -1
        self._pipe: asyncio.BaseTransport | None = None

    @classmethod
    async def open(cls) -> _Output:
        output = cls()
        end, output.writer = os.pipe()
        file = os.fdopen(end, "rb", 0)
        loop = asyncio.get_running_loop()
        output._pipe, _ = await loop.connect_read_pipe(lambda: output, file)
        return output

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.ended.set()

    def close(self) -> None:
        assert self._pipe is not None
        self._pipe.close()
