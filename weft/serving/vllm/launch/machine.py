"""The cores and the memory that servers on this machine share."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from weft.core.errors import ServeError
from weft.decoding.network.options import usable_cores

_TOPOLOGY = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class HostResources:
    """Resources of a deployment.

    cores           ids of the physical cores that this process may run on, one logical CPU each
    quota_cores     how many of them it may keep busy: less than `cores` in a container with a quota
    memory_bytes    total memory of the machine or of its container
    """

    cores: tuple[int, ...]
    quota_cores: int
    memory_bytes: int

    @property
    def owns_cores(self) -> bool:
        """Whether no quota applies, so that threads may be bound to the cores."""
        return self.quota_cores >= len(self.cores)


def this_machine() -> HostResources:
    """The machine that this process runs on."""
    cores = _physical_cores()
    return HostResources(cores, min(usable_cores(), len(cores)), _memory())


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


def cores_of_ranks(
    machine: HostResources, ranks: int, replicas: int, replica: int
) -> tuple[tuple[int, ...], ...]:
    """The cores of each rank of replica number `replica` (from 0), in the order of ranks.

    Replicas do not share cores while there are enough of them, nor do the ranks of one replica.
    """
    mine = _share(machine.cores, replicas, replica)
    mine = mine[: threads_of_rank(len(mine), ranks) * ranks]
    return tuple(tuple(_share(mine, ranks, rank)) for rank in range(ranks))


def threads_of_rank(cores: int, ranks: int) -> int:
    """How many of a replica's `cores` each of its ranks computes on, at least 1.

    With more cores than ranks, one is left to the scheduler and the HTTP server, which are always
    busy: OpenMP's threads spin while they wait for each other, so one late thread delays all.
    Measured on two busy cores, SmolLM2-135M: one thread 32 tokens/s for one request and 400 for 32
    at once, two threads 10 to 13 and 104 to 221. On two idle cores two threads are better, in
    float32 25 and 351 against 20 and 227 tokens/s, prompts twice as fast: users of idle machines
    set VLLM_CPU_OMP_THREADS_BIND, which weft does not change.
    """
    return max((cores - (cores > ranks)) // ranks, 1)


def _share(cores: Sequence[int], parts: int, part: int) -> Sequence[int]:
    """Part number `part` of `parts`: adjacent cores, equal numbers; one shared core if too few."""
    size = len(cores) // parts
    if size == 0:
        return (cores[part % len(cores)],)
    return cores[part * size : (part + 1) * size]


def as_list(cores: Sequence[int]) -> str:
    """Core ids in Linux's notation: `0-3,6`."""
    runs: list[list[int]] = []
    for core in cores:
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def refuse_windows() -> None:
    """Raises: `ServeError` on Windows, which lacks the signals and sessions of supervision."""
    if sys.platform == "win32":
        raise ServeError("weft cannot serve on Windows", hint="use Linux, or WSL 2")
