"""The process of an MCP server: started, written to, read, and ended with all it has started."""

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
_KEPT: Final = 4 * 1024
_GRACE_S: Final = 2.0
_LAST_OUTPUT_S: Final = 1.0


class ServerProcess:
    """A running process, the leader of a process group of its own.

    The end of what it writes to stderr is kept, to explain its end. `exited` is done when it has
    ended, its children are killed, and what it wrote before can be read.
    """

    def __init__(self, process: Process, mark: str, stdout: _Output, stderr: _Output) -> None:
        self._process = process
        self._mark = mark
        self._stdout = stdout
        self._stderr = stderr
        self._words = bytearray()
        self._listening = asyncio.create_task(self._listen())
        self.exited = asyncio.create_task(self._watch())

    @classmethod
    async def start(
        cls, command: Sequence[str], folder: Path | None, environment: Mapping[str, str]
    ) -> ServerProcess:
        """Start it. Raises: `OSError` or `ValueError` when that cannot be done."""
        outputs: list[_Output] = []
        mark = new_mark()
        inherited = process_environment(mark, "USER", "LOGNAME", "SHELL")
        try:
            for _ in range(2):
                outputs.append(await _Output.open())  # noqa: PERF401 - what is open gets closed
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
        """What it has written to stdout, as it comes; empty at the end."""
        return await self._stdout.reader.read(_CHUNK)

    async def write(self, data: bytes) -> None:
        """Write to its stdin. Raises: `OSError` when it does not listen any more."""
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        await self._process.stdin.drain()

    async def end(self) -> None:
        """Close its stdin, then ask it to end, then kill it; with all it has started.

        A cancellation kills it at once.
        """
        assert self._process.stdin is not None
        discarding = asyncio.create_task(self._discard())  # or it might hang in a write
        try:
            self._process.stdin.close()
            if not await self._gone():
                self._signal(signal.SIGTERM)
                if not await self._gone():
                    self.kill()
                    await self._gone()
        finally:
            self.kill()
            if self._process.stdin.transport.get_write_buffer_size():
                self._process.stdin.transport.abort()
            self._stdout.close()
            self._stderr.close()
            discarding.cancel()

    def kill(self) -> None:
        """End it now, and all that it has started."""
        if not self.exited.done():
            kill_group(self._process.pid, self._mark)

    @property
    def last_words(self) -> str:
        """The last lines that it wrote to stderr."""
        return self._words.decode("utf-8", "replace").strip()

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        code = self._process.returncode
        if code is None:
            return "closed its output"
        return f"was ended by {signal_name(-code)}" if code < 0 else f"ended with status {code}"

    async def _gone(self) -> bool:
        done, _ = await asyncio.wait({self.exited}, timeout=_GRACE_S)
        return bool(done)

    def _signal(self, number: signal.Signals) -> None:
        if not self.exited.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    async def _watch(self) -> None:
        await self._process.wait()
        kill_group(self._process.pid, self._mark)
        for output in (self._stdout, self._stderr):  # who left the group may hold them for ever
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_OUTPUT_S):
                    await output.ended.wait()
            output.close()

    async def _listen(self) -> None:
        while piece := await self._stderr.reader.read(_CHUNK):
            self._words += piece
            del self._words[:-_KEPT]

    async def _discard(self) -> None:
        while await self.read():
            continue


class _Output(asyncio.StreamReaderProtocol):
    """A pipe that a process writes into. `writer` is closed by whoever starts the process."""

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
