"""The cores and the memory that servers on this machine share. Knows no model and no flags."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from weft.decoding.network.cores import usable_cores

_TOPOLOGY = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class Machine:
    """What a deployment may use.

    cores           ids of the physical cores that this process may run on, one logical CPU each
    quota_cores     how many of them it may keep busy: less than `cores` in a container with a quota
    memory_bytes    all the memory of the machine or of its container
    """

    cores: tuple[int, ...]
    quota_cores: int
    memory_bytes: int

    @property
    def owns_cores(self) -> bool:
        """Whether its cores are its own, so that binding threads to them disturbs nobody."""
        return self.quota_cores >= len(self.cores)


def this_machine() -> Machine:
    """The machine that this process runs on."""
    cores = _physical_cores()
    return Machine(cores, min(usable_cores(), len(cores)), _memory())


def _physical_cores(topology: Path = _TOPOLOGY) -> tuple[int, ...]:
    """One logical CPU of each physical core: two threads of one core share its vector units."""
    if hasattr(os, "sched_getaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
    else:
        allowed = list(range(os.cpu_count() or 1))
    first: dict[str, int] = {}
    for core in allowed:
        try:
            siblings = (topology / f"cpu{core}/topology/thread_siblings_list").read_text("ascii")
        except OSError:
            siblings = str(core)
        first.setdefault(siblings.strip(), core)
    return tuple(sorted(first.values()))


def _memory(limit: Path = Path("/sys/fs/cgroup/memory.max")) -> int:
    total: int = psutil.virtual_memory().total
    try:
        return min(total, int(limit.read_text("ascii")))
    except (OSError, ValueError):
        return total
