"""How many cores this process may use, and how many of them a model should take."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_SPINS = "GOMP_SPINCOUNT"
_WAITING = (_SPINS, "OMP_WAIT_POLICY")
_FEW = 4
_sleeping = False


def usable_cores(quota: Path = _QUOTA) -> int:
    """Cores by affinity and by the container's quota, rounded down, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    try:
        allowed, period = quota.read_text(encoding="ascii").split()
        cores = min(cores, int(allowed) // int(period))
    except (OSError, ValueError):
        pass
    return max(cores, 1)


def import_torch() -> None:
    """Import torch so that its threads sleep while they wait for one another.

    They would spin for a millisecond. Beside other busy processes on two cores a step of two
    threads then takes 3 to 20 times longer than that of one; with sleeping threads up to a fifth
    longer. What sleeping costs on an idle machine depends on how fast it wakes a thread. Does
    nothing where torch is there already, or the environment says how to wait.
    """
    global _sleeping  # noqa: PLW0603 - so is torch, and the library reads its environment once
    if "torch" in sys.modules:
        return
    if any(name in os.environ for name in _WAITING):
        return
    os.environ[_SPINS] = "0"
    try:
        import torch  # noqa: F401

        _sleeping = True
    finally:
        del os.environ[_SPINS]


def model_threads() -> int:
    """Threads for a model's arithmetic: all of a few cores, else all but one.

    Of two to four cores one is much, and the event loop waits while the model computes; threads
    that spin (see `import_torch`) leave one free nevertheless.
    """
    cores = usable_cores()
    return cores if cores <= _FEW and _sleeping else max(cores - 1, 1)
