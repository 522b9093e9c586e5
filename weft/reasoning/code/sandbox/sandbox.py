"""Runs untrusted programs. A missing protection is an error, unless it is allowed.

The program runs two processes away: `jail.keeper` outside the sandbox, `jail.inside` within.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final, Literal, get_args

from weft.core.errors import SandboxError
from weft.reasoning.code.sandbox.keeper_process import KeeperReport, keep
from weft.reasoning.code.sandbox.outcome import SandboxResult, verdict
from weft.reasoning.code.sandbox.request import SandboxLimits, SandboxRequest

Protection = Literal["processes", "network", "files", "disk", "calls", "memory"]
PROTECTIONS: Final[Mapping[Protection, str]] = {
    "processes": "sees, signals and outlives no process; their number is bounded",
    "network": "makes no socket and has no network",
    "files": "sees what it needs to run, read only, and its own directory",
    "disk": "its directory is bounded",
    "calls": "cannot ask the kernel for what programs do not need",
    "memory": "its processes together are bounded, not only each of them",
}
"""Each protection, and what it guarantees of a program."""
_ADVICE: Final = (
    "run where unprivileged user namespaces are enabled, or as root with CAP_SYS_ADMIN (docker: "
    "--cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined); "
    "or, for programs that you trust, "
)


def checked_protections(names: Iterable[str]) -> tuple[Protection, ...]:
    """`names` as protections. Raises: `SandboxError` for an unknown name."""
    known = get_args(Protection)
    for name in names:
        if name not in known:
            hint = f"there are: {', '.join(known)}"
            raise SandboxError(f"there is no protection {name!r}", hint=hint)
    return tuple(name for name in known if name in names)


def refusal(missing: Mapping[Protection, str]) -> SandboxError:
    """The error for missing protections."""
    reasons = "; ".join(f"{name}: {why}" for name, why in missing.items())
    names = ", ".join(repr(name) for name in missing)
    hint = f"{_ADVICE}say allow=({names},)"
    return SandboxError(f"this system cannot protect from programs ({reasons})", hint=hint)


PROGRAM: Final = "main.py"
"""The name of the program's file in its directory."""
ENVIRONMENT: Final = {"PYTHONHASHSEED": "0"}
"""The whole environment of a program: the same order of sets in every run."""
_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/nix/store")


@cache
def python_command() -> tuple[str, ...]:
    """The command that runs `PROGRAM`: no site packages, no bytecode written, UTF-8."""
    return (os.path.realpath(sys.executable), "-s", "-S", "-P", "-B", "-X", "utf8", PROGRAM)


@cache
def python_paths() -> tuple[str, ...]:
    """The interpreter, its standard library and the system's shared libraries; no site packages."""
    named = sysconfig.get_config_vars("LIBDIR", "LDLIBRARY")
    shared = ["/".join(named)] if all(isinstance(name, str) for name in named) else []
    outside = {"platbase": sys.base_exec_prefix}  # a virtual environment has none of its own
    compiled = sysconfig.get_path("platstdlib", vars=outside)
    return (python_command()[0], sysconfig.get_path("stdlib"), compiled, *shared, *_LIBRARIES)


_DEFAULT: Final = SandboxLimits()


class CodeSandbox:
    """Runs programs within `limits`, in parallel; each has processes and files of its own.

    `allow` names the protections that may be missing on systems without them; other systems are
    refused. `reads` are further readable paths.
    """

    def __init__(
        self,
        limits: SandboxLimits = _DEFAULT,
        *,
        allow: Sequence[Protection] = (),
        reads: Sequence[str] = (),
    ) -> None:
        self._limits = limits
        self._allow = checked_protections(allow)
        self._reads = tuple(reads)

    @property
    def limits(self) -> SandboxLimits:
        return self._limits

    @property
    def allow(self) -> tuple[Protection, ...]:
        return self._allow

    @property
    def reads(self) -> tuple[str, ...]:
        return self._reads

    async def run(
        self, source: str, stdin: str = "", files: Mapping[str, str | bytes] | None = None
    ) -> SandboxResult:
        """Run a Python program with the standard library only. Raises: see `execute`."""
        given = {**(files or {}), PROGRAM: source}
        return await self.execute(python_command(), stdin, given, reads=python_paths())

    async def execute(
        self,
        command: Sequence[str],
        stdin: str = "",
        files: Mapping[str, str | bytes] | None = None,
        *,
        reads: Sequence[str] = (),
    ) -> SandboxResult:
        """Run `command` (an absolute path and arguments; no shell) in a directory with `files`.

        It may also read `reads`. When this returns, raises or is cancelled, none of its processes
        is left.

        Raises: `SandboxError` where a protection is missing, the command cannot be started, or the
        input is too large or lies outside the directory.
        """
        contents = {_inside(name): _bytes(content) for name, content in (files or {}).items()}
        request = self._request(tuple(command), _bytes(stdin), contents, (*self._reads, *reads))
        report = await self._keep(request)
        if "refused" in report.result:
            raise SandboxError(f"the program was not run: {report.result['refused']}")
        if missing := _lacking(report, self._allow):
            raise refusal(missing)
        if not report.result and not report.late:
            raise SandboxError("the program's keeper ended without a word", retryable=True)
        return verdict(report, self._limits)

    async def missing(self) -> Mapping[Protection, str]:
        """The protections that this system lacks, with reasons. Runs no program.

        Raises: `SandboxError` when they cannot be tested.
        """
        report = await self._keep(self._request((), b"", {}, (), probe=True))
        if "missing" not in report.result:
            why = report.result.get("refused", "why?")
            raise SandboxError(f"protections cannot be tried: {why}")
        return _lacking(report, ())

    def _request(
        self,
        command: tuple[str, ...],
        stdin: bytes,
        files: Mapping[str, bytes],
        reads: tuple[str, ...],
        *,
        probe: bool = False,
    ) -> SandboxRequest:
        size, most = len(stdin) + sum(map(len, files.values())), self._limits.input_bytes
        if size > most:
            raise SandboxError(f"a program is given {size:,} bytes; it may be given {most:,}")
        limits, allow = self._limits, self._allow
        request = SandboxRequest(command, stdin, files, ENVIRONMENT, reads, limits, allow)
        return replace(request, probe=probe)

    async def _keep(self, request: SandboxRequest) -> KeeperReport:
        if not sys.platform.startswith("linux"):
            raise refusal(dict.fromkeys(PROTECTIONS, f"{sys.platform} has no namespaces"))
        with _host_box(wanted="disk" in self._allow) as box:
            return await keep(replace(request, box=box))


def _lacking(report: KeeperReport, allow: Sequence[Protection]) -> Mapping[Protection, str]:
    missing = report.result.get("missing", {})
    return {name: missing[name] for name in PROTECTIONS if name in missing and name not in allow}


@contextmanager
def _host_box(*, wanted: bool) -> Iterator[str]:
    """A host directory, for a program whose files need not be bounded."""
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
    # A model's JSON may hold a lone surrogate, which is not encodable.
    return content.encode("utf-8", "replace") if isinstance(content, str) else content
