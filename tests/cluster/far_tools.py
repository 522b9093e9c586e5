"""Tools that workers import. What they do is seen in files."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import weft


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@weft.tool(pure=True)
async def square(n: int) -> int:
    """The square of a number."""
    return n * n


@weft.tool
async def unsure(file: str) -> int:
    """Adds a line to a file; its effect is not declared."""
    return _note(file, "acted")


@weft.tool(effect="once")
async def charge(file: str) -> int:
    """Must not happen twice."""
    return _note(file, "charged")


@weft.tool(effect="idempotent")
async def book(file: str) -> str:
    """Writes its key."""
    _note(file, weft.idempotency_key())
    return weft.idempotency_key()


@weft.tool
async def wait(file: str) -> None:
    """Waits for ever, and says when it is cancelled."""
    _note(file, "begun")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        _note(file, "cancelled")
        raise


async def linger(file: str) -> None:
    """Writes its process, and waits for ever."""
    Path(file).write_text(str(os.getpid()), "ascii")
    await asyncio.Event().wait()


@weft.tool
async def stubborn(file: str) -> None:
    """Does not end when it is cancelled."""
    _note(file, "begun")
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            _note(file, "ignored")


@weft.tool
async def text(length: int) -> str:
    """A text of that length."""
    return "x" * length


@weft.tool
async def length(text: str) -> int:
    """The length of a text."""
    return len(text)


@weft.tool
async def speak(lines: int, context: weft.ToolContext) -> int:
    """Logs lines."""
    for number in range(lines):
        context.log(f"line {number}")
    return lines


@weft.tool(isolate=True)
def apart() -> int:
    """The process it runs in."""
    return os.getpid()


@weft.tool
def place() -> int:
    """The process it runs in."""
    return os.getpid()


@weft.tool
async def secret() -> bool:
    """Whether the worker has a credential, by name."""
    return "WEFT_TEST_CREDENTIAL" in os.environ


def _many(calls: list[dict[str, int]]) -> list[int]:
    return [call["n"] + 100 * len(calls) for call in calls]


@weft.tool(batch=weft.Batch(_many, most=8))
def together(n: int) -> int:
    """Has a batch form."""
    return n


def _note(file: str, text: str) -> int:
    path = Path(file)
    with path.open("a", encoding="utf-8") as opened:
        opened.write(f"{text}\n")
    return len(path.read_text("utf-8").splitlines())
