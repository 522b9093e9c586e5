"""What a process gives up before it becomes the program. Nothing of it can be undone."""

from __future__ import annotations

import os
import resource
import signal
from typing import Final

from weft.reasoning.code.sandbox.jail.kernel import (
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    drop_capabilities,
    prctl,
)
from weft.reasoning.code.sandbox.limits import Limits

_STACK_BYTES: Final = 8 * 1024 * 1024
_PENDING_SIGNALS: Final = 256
_NO_CORE: Final = 1  # too small for a file; 0 would still let a crash start the system's collector
_HIGHEST_DESCRIPTOR: Final = 1 << 16


def surrender(limits: Limits, processes: int, user: int | None, kept: int) -> None:
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


def _most(limits: Limits, processes: int) -> dict[int, int]:
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
