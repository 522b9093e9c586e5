"""What tests of MCP see from outside: traces of servers, and whether processes are still there."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.agents.mcp import McpServer

HERE = Path(__file__).parent
PATIENCE_S = 120.0


class Trace:
    """The file in which a server says what happens to it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "trace.txt"
        self.path.touch()

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def pids(self) -> list[int]:
        """The processes of the server, in the order they started."""
        return [int(pid) for pid in re.findall(r"^pid (\d+)$", self.text, re.MULTILINE)]

    def has(self, line: str) -> Callable[[], bool]:
        return lambda: line in self.text.splitlines()

    def peer(self, **more: object) -> McpServer:
        """The friendly server, as a program."""
        command = (sys.executable, str(HERE / "mcp_peer.py"), str(self.path), "stdio")
        return McpServer("peer", command, **more)  # type: ignore[arg-type]

    def hostile(self, mode: str, **more: object) -> McpServer:
        """The hostile server, as a program."""
        command = (sys.executable, str(HERE / "mcp_hostile.py"), mode, str(self.path))
        return McpServer("hostile", command, **more)  # type: ignore[arg-type]

    @contextmanager
    def peer_over_http(self, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
        """The friendly server at an address, and its process."""
        process = subprocess.Popen(
            [sys.executable, str(HERE / "mcp_peer.py"), str(self.path), "http", str(port)],
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        with process.stdout as said:
            try:
                yield f"http://127.0.0.1:{int(said.readline())}/mcp", process
            finally:
                process.kill()
                process.wait()


async def until(true: Callable[[], bool]) -> None:
    """Wait for something that happens in another process."""
    async with asyncio.timeout(PATIENCE_S):
        while not true():
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
