"""The init process of the sandbox: builds the file system, starts the program, and waits for it.

The program gives up every privilege first, irrevocably. When this process ends, the kernel ends
every other process inside. It reports to the keeper in lines of JSON.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from weft.reasoning.code.sandbox.jail.enclosure import Enclosure
from weft.reasoning.code.sandbox.jail.filesystem import (
    BOX,
    DEVICES,
    build_tree,
    own_mounts,
    resolve,
    restrict_files,
    why_no_rules,
)
from weft.reasoning.code.sandbox.jail.kernel import (
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    drop_capabilities,
    prctl,
)
from weft.reasoning.code.sandbox.jail.seccomp import restrict_calls
from weft.reasoning.code.sandbox.request import SandboxLimits, SandboxRequest

_STACK_BYTES: Final = 8 * 1024 * 1024
_PENDING_SIGNALS: Final = 256
_NO_CORE: Final = 1  # too small for a file; 0 would still let a crash start the system's collector
_HIGHEST_DESCRIPTOR: Final = 1 << 16


def drop_privileges(limits: SandboxLimits, processes: int, user: int | None, writer: int) -> None:
    """Set `limits`, become `user` (None: no change), give up every privilege.

    `processes` is the limit as the kernel counts it for that user. `writer` is the only file
    descriptor above 2 that stays open.

    Raises: `OSError` or `ValueError` where the system does not permit it.
    """
    _ordinary_signals()
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    for kind, most in _most(limits, processes).items():
        _limit(kind, most)
    # The soft limit sends a distinct signal; the hard one cannot be ignored.
    _limit(resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + 1)
    drop_capabilities()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.closerange(3, writer)
    os.closerange(writer + 1, _HIGHEST_DESCRIPTOR)


def _most(limits: SandboxLimits, processes: int) -> dict[int, int]:
    return {
        resource.RLIMIT_AS: limits.memory_bytes,
        resource.RLIMIT_NPROC: processes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_STACK: _STACK_BYTES,
        resource.RLIMIT_SIGPENDING: _PENDING_SIGNALS,
        resource.RLIMIT_CORE: _NO_CORE,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_RTPRIO: 0,
    }


def _limit(kind: int, soft: int, hard: int | None = None) -> None:
    """Lower a limit; a lower one stays."""
    given = resource.getrlimit(kind)[1]
    ceiling = soft if hard is None else hard
    if given != resource.RLIM_INFINITY:
        ceiling = min(ceiling, given)
    resource.setrlimit(kind, (min(soft, ceiling), ceiling))


def _ordinary_signals() -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            continue  # reserved by the C library
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


_SEALS: Final = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def run_init(request: SandboxRequest, enclosure: Enclosure, go: int, writer: int) -> NoReturn:
    """Run the init process from `go` (a byte to read) to the program's end, and report it."""
    try:
        # The kernel drops signals that an init process does not handle; Python handles SIGINT.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.read(go, 1):  # end of file: the keeper died before PR_SET_PDEATHSIG was set
            _send(writer, _run_program(request, enclosure, writer))
    except BaseException as error:  # noqa: BLE001 - the keeper must receive every error
        _send(writer, {"refused": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(0)


def _run_program(request: SandboxRequest, enclosure: Enclosure, writer: int) -> Mapping[str, Any]:
    missing, reads = dict(enclosure.missing), resolve(request.reads)
    try:
        own_mounts()
        box = BOX
    except OSError as error:
        why = missing["disk"] = error.strerror or str(error)
        if no_rules := why_no_rules() or missing.get("calls"):
            missing["files"] = f"{why}; {no_rules}"
        box = request.box
    if request.probe or not missing.keys() <= set(request.allow):
        return {"missing": missing}
    limits, owner = request.limits, enclosure.owner
    if box == BOX:
        build_tree(reads, limits.disk_bytes, limits.disk_files, owner)
    _write(request.files, Path(box), owner)
    source = _sealed(request.stdin)
    program = os.fork()
    if program == 0:
        _exec_program(request, enclosure, box, source, writer, missing)
    prctl(PR_SET_DUMPABLE, 0)
    _send(writer, {"started": program})
    return _wait(program)


def _write(files: Mapping[str, bytes], box: Path, owner: int) -> None:
    os.chown(box, owner, -1)
    for name, content in files.items():
        place = box / name
        for directory in reversed(place.relative_to(box).parents[:-1]):
            (box / directory).mkdir(exist_ok=True)
            os.chown(box / directory, owner, -1)
        place.write_bytes(content)
        os.chown(place, owner, -1)


def _sealed(content: bytes) -> int:
    """A sealed file in memory with `content`, at its beginning."""
    file_number = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(file_number, "wb", closefd=False) as file:
        file.write(content)
    fcntl.fcntl(file_number, fcntl.F_ADD_SEALS, _SEALS)
    os.lseek(file_number, 0, os.SEEK_SET)
    return file_number


def _exec_program(
    request: SandboxRequest,
    enclosure: Enclosure,
    box: str,
    source: int,
    writer: int,
    missing: Collection[str],
) -> NoReturn:
    """Turn this process into the program."""
    try:
        os.setsid()
        os.dup2(source, 0)
        os.chdir(box)
        processes = request.limits.processes + enclosure.reserved
        drop_privileges(request.limits, processes, enclosure.user, writer)
        ruled = box != BOX and "files" not in missing
        if ruled:
            restrict_files(request.reads, DEVICES, box)
        if "calls" not in missing:
            restrict_calls(attributes=not ruled)
        os.execve(request.command[0], request.command, dict(request.environment))  # noqa: S606
    except BaseException as error:  # noqa: BLE001 - nothing may run on here but the program
        _send(writer, {"refused": f"{request.command[0]} cannot be run: {error}"})
    finally:
        os._exit(1)


def _wait(program: int) -> Mapping[str, Any]:
    """Wait for the program's end; reaps every orphan until then."""
    while True:
        pid, status, usage = os.wait4(-1, 0)
        if pid == program:
            code = os.waitstatus_to_exitcode(status)
            return {
                "code": code,
                "cpu_s": usage.ru_utime + usage.ru_stime,
                "peak_bytes": usage.ru_maxrss * 1024,
            }


def _send(writer: int, message: Mapping[str, Any]) -> None:
    os.write(writer, json.dumps(message).encode() + b"\n")
