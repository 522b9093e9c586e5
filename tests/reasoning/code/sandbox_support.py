"""Whether this machine can protect itself, and what is left of programs that have run on it."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest

from weft.core.errors import SandboxError
from weft.reasoning.code.sandbox.outcome import SandboxResult
from weft.reasoning.code.sandbox.sandbox import PROGRAM, CodeSandbox, python_command, python_paths


def _why_not() -> str:
    try:
        missing = asyncio.run(CodeSandbox().missing())
    except SandboxError as error:
        return str(error)
    return "; ".join(f"{name}: {why}" for name, why in missing.items())


_WHY_NOT = _why_not()
needs_protection = pytest.mark.skipif(
    bool(_WHY_NOT), reason=f"this system has no sandbox: {_WHY_NOT}"
)


class Marked:
    """Runs of a program whose processes can be told from all others of this machine."""

    def __init__(self, sandbox: CodeSandbox) -> None:
        self.mark = secrets.token_hex(8)
        self._sandbox = sandbox

    async def run(self, source: str) -> SandboxResult:
        command = (*python_command(), self.mark)
        return await self._sandbox.execute(command, "", {PROGRAM: source}, reads=python_paths())

    def processes(self) -> list[int]:
        return processes_with(self.mark)


def processes_with(word: str) -> list[int]:
    """Those that have `word` on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found
