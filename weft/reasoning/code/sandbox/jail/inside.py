"""The first process inside: it builds the tree, starts the program, and waits for it.

The program gives up every privilege first; nothing of it can be undone. When this process ends, the
kernel ends every other process inside. It tells the keeper in lines of JSON.
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


def surrender(limits: SandboxLimits, processes: int, user: int | None, kept: int) -> None:
    """Take `limits`, become `user` (None: stay who one is), give up every privilege.

    `processes` is the limit as the kernel counts it for that user. `kept` is the one file
    descriptor above 2 that stays open.

    Raises: `OSError` or `ValueError` where the system does not let us.
    """
    _ordinary_signals()
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    for kind, most in _most(limits, processes).items():
        _hold(kind, most)
    # The soft limit is a signal that can be told from other ends; the hard one cannot be ignored.
    _hold(resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + 1)
    drop_capabilities()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.closerange(3, kept)
    os.closerange(kept + 1, _HIGHEST_DESCRIPTOR)


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


def _hold(kind: int, soft: int, hard: int | None = None) -> None:
    """Lower a limit; one that is lower already stays."""
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


def live(order: SandboxRequest, enclosure: Enclosure, go: int, tell: int) -> NoReturn:
    """Be the first process, from `go` (a byte to read) to the program's end; tell what happened."""
    try:
        # The kernel keeps from a first process what it does not handle; Python handles SIGINT.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.read(go, 1):  # nothing comes when the keeper died before we could die with it
            _tell(tell, _lived(order, enclosure, tell))
    except BaseException as error:  # noqa: BLE001 - whatever it is, the keeper has to hear of it
        _tell(tell, {"refused": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(0)


def _lived(order: SandboxRequest, enclosure: Enclosure, tell: int) -> Mapping[str, Any]:
    missing, reads = dict(enclosure.missing), resolve(order.reads)
    try:
        own_mounts()
        box = BOX
    except OSError as error:
        why = missing["disk"] = error.strerror or str(error)
        if no_rules := why_no_rules() or missing.get("calls"):
            missing["files"] = f"{why}; {no_rules}"
        box = order.box
    if order.probe or not missing.keys() <= set(order.allow):
        return {"missing": missing}
    limits, owner = order.limits, enclosure.owner
    if box == BOX:
        build_tree(reads, limits.disk_bytes, limits.disk_files, owner)
    _write(order.files, Path(box), owner)
    source = _sealed(order.stdin)
    program = os.fork()
    if program == 0:
        _become(order, enclosure, box, source, tell, missing)
    prctl(PR_SET_DUMPABLE, 0)
    _tell(tell, {"started": program})
    return _ended(program)


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
    """A file in memory that nobody can write to or grow, at its beginning."""
    held = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(held, "wb", closefd=False) as file:
        file.write(content)
    fcntl.fcntl(held, fcntl.F_ADD_SEALS, _SEALS)
    os.lseek(held, 0, os.SEEK_SET)
    return held


def _become(
    order: SandboxRequest,
    enclosure: Enclosure,
    box: str,
    source: int,
    tell: int,
    missing: Collection[str],
) -> NoReturn:
    """Turn this process into the program."""
    try:
        os.setsid()
        os.dup2(source, 0)
        os.chdir(box)
        processes = order.limits.processes + enclosure.reserved
        surrender(order.limits, processes, enclosure.user, tell)
        ruled = box != BOX and "files" not in missing
        if ruled:
            restrict_files(order.reads, DEVICES, box)
        if "calls" not in missing:
            restrict_calls(attributes=not ruled)
        os.execve(order.command[0], order.command, dict(order.environment))  # noqa: S606
    except BaseException as error:  # noqa: BLE001 - nothing may run on here but the program
        _tell(tell, {"refused": f"{order.command[0]} cannot be run: {error}"})
    finally:
        os._exit(1)


def _ended(program: int) -> Mapping[str, Any]:
    """Wait for the program's end, and bury every orphan until then."""
    while True:
        pid, status, usage = os.wait4(-1, 0)
        if pid == program:
            code = os.waitstatus_to_exitcode(status)
            return {
                "code": code,
                "cpu_s": usage.ru_utime + usage.ru_stime,
                "peak_bytes": usage.ru_maxrss * 1024,
            }


def _tell(tell: int, message: Mapping[str, Any]) -> None:
    os.write(tell, json.dumps(message).encode() + b"\n")
