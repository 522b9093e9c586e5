"""The tools that run on the cluster. Effects are lines of a file, written in one piece."""

from __future__ import annotations

import asyncio
import os

import weft


@weft.tool
async def noop(n: int) -> int:
    """Nothing."""
    return n


@weft.tool
async def text(length: int) -> str:
    """A text of that length."""
    return "x" * length


@weft.tool(pure=True)
async def square(n: int) -> int:
    """Takes a moment."""
    await asyncio.sleep(0.1)
    return n * n


@weft.tool(effect="idempotent", retry=8)
async def book(ledger: str, item: str) -> str:
    """Writes under its key, as a service that knows repeated keys."""
    await asyncio.sleep(0.01)
    _append(ledger, f"book {item} {weft.idempotency_key()}")
    await asyncio.sleep(0.01)
    return item


@weft.tool(effect="once", retry=8)
async def charge(ledger: str, item: str) -> str:
    """Must not happen twice."""
    await asyncio.sleep(0.01)
    _append(ledger, f"charge {item} -")
    await asyncio.sleep(0.01)
    return item


def _append(ledger: str, line: str) -> None:
    file = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)
