"""The sandbox of model-written programs as a tool, so that it can run on another machine."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from weft.agents.tools import tool
from weft.core.errors import SandboxError, WeftError
from weft.core.ports import BoundTool
from weft.reasoning.code.sandbox.outcome import SandboxResult
from weft.reasoning.code.sandbox.request import SandboxLimits
from weft.reasoning.code.sandbox.sandbox import CodeSandbox, checked_protections


@tool(pure=True)
async def run_program(
    source: str,
    stdin: str,
    files: dict[str, str],
    limits: dict[str, int | float],
    allow: list[str],
    reads: list[str],
) -> dict[str, Any]:
    """Run a Python program in the sandbox of this machine, as many at once as it has processors.

    `files`: Base64 by name. Returns a `SandboxResult`, as data.
    """
    allowed = checked_protections(allow)
    sandbox = CodeSandbox(_limits(limits), allow=allowed, reads=reads)
    contents = {name: base64.b64decode(content) for name, content in files.items()}
    async with _slots(asyncio.get_running_loop()):
        return asdict(await sandbox.run(source, stdin, contents))


def _limits(given: Mapping[str, Any]) -> SandboxLimits:
    return SandboxLimits(**given)


@lru_cache(maxsize=1)
def _slots(_: asyncio.AbstractEventLoop) -> asyncio.Semaphore:
    return asyncio.Semaphore(os.cpu_count() or 1)


class PlacedSandbox:
    """Implements `ProgramRunner`: as `sandbox`, where `call` calls the tool `run_program`."""

    def __init__(self, sandbox: CodeSandbox, call: BoundTool) -> None:
        self._settings = {
            "limits": asdict(sandbox.limits),
            "allow": list(sandbox.allow),
            "reads": list(sandbox.reads),
        }
        self._call = call

    async def run(
        self, source: str, stdin: str = "", files: Mapping[str, str | bytes] | None = None
    ) -> SandboxResult:
        """Run `source` there. Raises: `SandboxError`, also for a lost worker."""
        contents = {name: _bytes(file) for name, file in (files or {}).items()}
        given = {
            "source": _bytes(source).decode(),
            "stdin": _bytes(stdin).decode(),
            "files": {name: base64.b64encode(body).decode() for name, body in contents.items()},
            **self._settings,
        }
        try:
            return SandboxResult(**await self._call(given))
        except SandboxError:
            raise
        except WeftError as error:
            message = f"the program was not run: {error.message}"
            raise SandboxError(message, hint=error.hint, retryable=error.retryable) from error


def _bytes(content: str | bytes) -> bytes:
    return content.encode("utf-8", "replace") if isinstance(content, str) else content
