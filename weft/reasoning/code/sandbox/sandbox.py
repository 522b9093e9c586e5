"""Runs programs that nobody trusts. Knows no language but how Python is started.

The program runs two processes away: `jail.keeper` is outside, `jail.inside` within.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from weft.core.errors import SandboxError
from weft.reasoning.code.sandbox.jail.order import Order
from weft.reasoning.code.sandbox.keeping import Kept, keep
from weft.reasoning.code.sandbox.limits import Limits
from weft.reasoning.code.sandbox.outcome import Ran
from weft.reasoning.code.sandbox.protection import (
    PROTECTIONS,
    Protection,
    checked_protections,
    refusal,
)
from weft.reasoning.code.sandbox.python import (
    ENVIRONMENT,
    PROGRAM,
    python_command,
    python_paths,
)
from weft.reasoning.code.sandbox.verdict import verdict

_DEFAULT: Final = Limits()


class Sandbox:
    """Runs programs within `limits`, several at a time; each has processes and files of its own.

    `allow` names the protections that may be missing where the system cannot give them; without it
    such a system is refused. `reads` are further paths that programs may read.
    """

    def __init__(
        self,
        limits: Limits = _DEFAULT,
        *,
        allow: Sequence[Protection] = (),
        reads: Sequence[str] = (),
    ) -> None:
        self._limits = limits
        self._allow = checked_protections(allow)
        self._reads = tuple(reads)

    @property
    def limits(self) -> Limits:
        """What a program may take."""
        return self._limits

    async def run(
        self, source: str, stdin: str = "", files: Mapping[str, str | bytes] | None = None
    ) -> Ran:
        """Run a Python program that has the standard library only. Raises as `execute` does."""
        given = {**(files or {}), PROGRAM: source}
        return await self.execute(python_command(), stdin, given, reads=python_paths())

    async def execute(
        self,
        command: Sequence[str],
        stdin: str = "",
        files: Mapping[str, str | bytes] | None = None,
        *,
        reads: Sequence[str] = (),
    ) -> Ran:
        """Run `command` (an absolute path and arguments; no shell) in a directory with `files`.

        It may read `reads` besides. When this returns, raises or is cancelled, no process of it is
        left.

        Raises: `SandboxError` where a protection is missing, the command cannot be started, or
        what it is given is too large or lies outside its directory.
        """
        held = {_inside(name): _bytes(content) for name, content in (files or {}).items()}
        order = self._order(tuple(command), _bytes(stdin), held, (*self._reads, *reads))
        kept = await self._kept(order)
        if "refused" in kept.said:
            raise SandboxError(f"the program was not run: {kept.said['refused']}")
        if missing := _lacking(kept, self._allow):
            raise refusal(missing)
        if not kept.said and not kept.late:
            raise SandboxError("the program's keeper ended without a word", retryable=True)
        return verdict(kept, self._limits)

    async def missing(self) -> Mapping[Protection, str]:
        """The protections that this system cannot give, and why. Runs no program.

        Raises: `SandboxError` when not even that can be found out.
        """
        kept = await self._kept(self._order((), b"", {}, (), probe=True))
        if "missing" not in kept.said:
            raise SandboxError(f"protections cannot be tried: {kept.said.get('refused', 'why?')}")
        return _lacking(kept, ())

    def _order(
        self,
        command: tuple[str, ...],
        stdin: bytes,
        files: Mapping[str, bytes],
        reads: tuple[str, ...],
        *,
        probe: bool = False,
    ) -> Order:
        size, most = len(stdin) + sum(map(len, files.values())), self._limits.input_bytes
        if size > most:
            raise SandboxError(f"a program is given {size:,} bytes; it may be given {most:,}")
        order = Order(command, stdin, files, ENVIRONMENT, reads, self._limits, self._allow)
        return replace(order, probe=probe)

    async def _kept(self, order: Order) -> Kept:
        if not sys.platform.startswith("linux"):
            raise refusal(dict.fromkeys(PROTECTIONS, f"{sys.platform} has no namespaces"))
        with _host_box(wanted="disk" in self._allow) as box:
            return await keep(replace(order, box=box))


def _lacking(kept: Kept, allow: Sequence[Protection]) -> Mapping[Protection, str]:
    told = kept.said.get("missing", {})
    return {name: told[name] for name in PROTECTIONS if name in told and name not in allow}


@contextmanager
def _host_box(*, wanted: bool) -> Iterator[str]:
    """A directory of the host, for a program whose files need not be bounded."""
    if not wanted:
        yield ""
        return
    with TemporaryDirectory(prefix="weft-", ignore_cleanup_errors=True) as box:
        yield box


def _inside(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in name:
        raise SandboxError(f"{name!r} is not a path inside the program's directory")
    return str(path)


def _bytes(content: str | bytes) -> bytes:
    # A lone surrogate, which a model's JSON may hold, is no text that a program could read.
    return content.encode("utf-8", "replace") if isinstance(content, str) else content
