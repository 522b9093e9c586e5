"""Plain tasks of Ray: `python -m evals.cluster.ray_tasks ADDRESS ITEMS SINGLES`, as JSON."""

from __future__ import annotations

import json
import sys
import time
from statistics import median
from typing import Any, Final

import ray

MOST: Final = 10_000
"""Items that are measured: a task costs about a millisecond, whatever their number."""


def main(address: str, items: int, singles: int) -> None:
    """Measure, and print."""
    ray.init(address=address, log_to_driver=False, logging_level=40)
    task: Any = ray.remote(num_cpus=0)(_noop)
    ray.get([task.remote(n) for n in range(100)])
    count = min(items, MOST)
    began = time.perf_counter()
    if ray.get([task.remote(n) for n in range(count)]) != list(range(count)):
        raise AssertionError("the tasks have other results")
    item_ms = (time.perf_counter() - began) / count * 1e3
    times = []
    for n in range(singles):
        began = time.perf_counter()
        ray.get(task.remote(n))
        times.append((time.perf_counter() - began) * 1e3)
    print(json.dumps({"item_ms": item_ms, "items": count, "p50_ms": median(times)}), flush=True)


def _noop(n: int) -> int:
    return n


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
