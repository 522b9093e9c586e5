"""Which cores the workers of a server compute on, on a CPU. Knows no engine's variables."""

from __future__ import annotations

from collections.abc import Sequence

from weft.serving.vllm.machine import Machine


def cores_of_ranks(
    machine: Machine, ranks: int, replicas: int, replica: int
) -> tuple[tuple[int, ...], ...]:
    """The cores of each rank of replica number `replica` (from 0), in the order of ranks.

    Replicas do not share cores while there are enough of them, nor do the ranks of one replica.
    """
    mine = _share(machine.cores, replicas, replica)
    mine = mine[: threads_of_rank(len(mine), ranks) * ranks]
    return tuple(tuple(_share(mine, ranks, rank)) for rank in range(ranks))


def threads_of_rank(cores: int, ranks: int) -> int:
    """How many of a replica's `cores` each of its ranks computes on, at least 1.

    Where there are more cores than ranks, one is left to the scheduler and the HTTP server, which
    never rest: OpenMP's threads wait for each other by spinning, and one that is held up holds up
    all. Measured on two busy cores, SmolLM2-135M: one thread 32 tokens/s for one request and 400
    for 32 at once, two threads 10 to 13 and 104 to 221. On two idle cores two threads are better,
    in float32 25 and 351 against 20 and 227 tokens/s, prompts twice as fast: somebody whose machine
    does nothing else sets VLLM_CPU_OMP_THREADS_BIND, which is left as it is.
    """
    return max((cores - (cores > ranks)) // ranks, 1)


def _share(cores: Sequence[int], parts: int, part: int) -> Sequence[int]:
    """Part number `part` of `parts`: neighbours, of equal number; one shared core if too few."""
    size = len(cores) // parts
    if size == 0:
        return (cores[part % len(cores)],)
    return cores[part * size : (part + 1) * size]


def as_list(cores: Sequence[int]) -> str:
    """Core ids the way Linux writes them: `0-3,6`."""
    runs: list[list[int]] = []
    for core in cores:
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
