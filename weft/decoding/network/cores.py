"""How many cores this process may use, and how many of them a model should take."""

from __future__ import annotations

import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


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


def model_threads() -> int:
    """Threads for a model's arithmetic: all cores but one.

    Measured on two cores. Beside one busy process two threads take five times as long for a token
    as one: they spin at each other's barriers and neither yields. On an idle machine two are a
    quarter faster than one for a single stream, and half as fast again for prompts and batches.
    Threads that sleep instead (`GOMP_SPINCOUNT=0`) are safe, and slower than one on both.
    """
    return max(usable_cores() - 1, 1)
