"""An MCP server for tests, on the official SDK: `mcp_peer.py TRACE stdio` or `... http PORT`.

It says in the file TRACE what happens to it, so that it can be seen from outside.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

TRACE = Path(sys.argv[1])
server = MCPServer("peer", log_level="CRITICAL")


def trace(line: str) -> None:
    with TRACE.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


@server.tool()
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool(name="shout-it.out")
def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


@server.tool()
def environment(name: str) -> str:
    """A variable of the environment."""
    return os.environ.get(name, "not there")


@server.tool()
async def wait(name: str) -> str:
    """Wait for ever."""
    trace(f"{name} started")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        trace(f"{name} cancelled")
        raise
    return ""


@server.tool()
async def steps(count: int, context: Context) -> str:
    """Report progress."""
    for step in range(count):
        await context.report_progress(step + 1, count, f"step \x1b[31m{step + 1}")
    return "done"


@server.tool()
def fail(why: str) -> str:
    """Never works."""
    trace("failed")
    raise ToolError(why)


@server.tool()
def die() -> str:
    """End the process."""
    trace("died")
    print("the last words", os.environ.get("PEER_TOKEN", ""), file=sys.stderr, flush=True)
    os._exit(3)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def die_once() -> str:
    """End the process the first time."""
    first = "died once" not in TRACE.read_text(encoding="utf-8")
    trace("died once")
    if first:
        os._exit(4)
    return "alive"


@server.tool()
def big(size: int) -> str:
    """A long text."""
    return "x" * size


@server.tool()
def child() -> int:
    """Start a process that ignores SIGTERM and the end of its parent."""
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    return subprocess.Popen([sys.executable, "-c", code]).pid


@server.tool()
def daemon() -> int:
    """As `child`, in a session of its own."""
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    return subprocess.Popen([sys.executable, "-c", code], start_new_session=True).pid


def over_http(port: int) -> None:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen()
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="critical")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    trace(f"pid {os.getpid()}")
    if sys.argv[2] == "http":
        over_http(int(sys.argv[3]))
    else:
        server.run("stdio")
