"""Tools that misbehave, at the top level of a module, so that a subprocess can import them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from weft.agents.tools import Isolation, ToolContext, tool
from weft.core.errors import ModelUnavailable

MIB = 1024 * 1024
isolated = tool(isolate=Isolation(timeout_s=300))


@isolated
def twice(number: int) -> int:
    """Behave."""
    return 2 * number


@isolated
async def twice_later(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def plain(number: int) -> int:
    return -number


negated = tool(name="negated", isolate=True)(plain)


@isolated
def talks(context: ToolContext) -> float:
    context.log("on the way")
    print("printed")
    print("complained", file=sys.stderr)
    left = context.time_left_s()
    assert left is not None
    return left


@isolated
def not_a_number() -> dict[str, float]:
    return {"nan": float("nan")}


@isolated
def surroundings() -> dict[str, Any]:
    return {"env": dict(os.environ), "pid": os.getpid(), "group": os.getpgrp()}


@tool(isolate=Isolation(env=("SECRET_KEY",), timeout_s=300))
def trusted() -> str | None:
    return os.environ.get("SECRET_KEY")


@isolated
def raises(message: str) -> None:
    raise ValueError(message)


@isolated
def raises_ours() -> None:
    raise ModelUnavailable("the endpoint is gone", hint="start it")


@isolated
def leaves_by_exit() -> None:
    sys.exit("had enough")


@isolated
def leaves_at_once() -> None:
    print("the last words", flush=True)
    os._exit(3)


@isolated
def crashes() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


@isolated
def is_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@isolated
def lies() -> int:
    return "no number"  # type: ignore[return-value]


@isolated
def forges() -> int:
    os.write(int(sys.argv[1]), b"nonsense\n")
    return 1


@isolated
def asks() -> str:
    return input()


@isolated
def forks_and_returns_twice() -> int:
    os.fork()
    return 1


@isolated
def leaves_a_child(context: ToolContext) -> str:
    child = os.fork()
    if child == 0:
        time.sleep(600)
    context.log(str(child))
    return "done"


@isolated
def leaves_a_daemon(context: ToolContext) -> str:
    sleeping = [sys.executable, "-c", "import time; time.sleep(600)"]
    daemon = subprocess.Popen(sleeping, start_new_session=True)
    context.log(str(daemon.pid))
    return "done"


@isolated
def blocks(context: ToolContext) -> None:
    child = os.fork()
    if child:
        context.log(f"{os.getpid()} {child}")
    time.sleep(600)


@tool(isolate=Isolation(timeout_s=0.5))
def loops() -> None:
    while True:
        pass


@tool(isolate=Isolation(cpu_s=1, timeout_s=300))
def burns() -> None:
    while True:
        pass


@tool(isolate=Isolation(memory_bytes=256 * MIB, timeout_s=300))
def asks_for_much() -> int:
    return len(bytearray(1024 * MIB))


@tool(isolate=Isolation(memory_bytes=256 * MIB, timeout_s=300))
def grows() -> None:
    kept = []
    while True:
        kept.append(bytearray(MIB))


@tool(isolate=Isolation(memory_bytes=128 * MIB, timeout_s=300))
def modest() -> str:
    return "fits"


@tool(isolate=Isolation(output_bytes=MIB, timeout_s=300))
def prints_much() -> None:
    while True:
        print("x" * 1000)


@tool(isolate=Isolation(output_bytes=MIB, timeout_s=300))
def prints_some() -> int:
    print("x" * (MIB // 2))
    return 1


@tool(isolate=Isolation(output_bytes=MIB, timeout_s=300))
def returns_much() -> str:
    return "x" * (2 * MIB)


@tool(isolate=Isolation(file_bytes=MIB, timeout_s=300))
def writes_much(path: str) -> None:
    Path(path).write_bytes(bytes(2 * MIB))
