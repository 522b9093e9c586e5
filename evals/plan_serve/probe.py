"""`python -m evals.plan_serve.probe THREADS CORE...`: what cores do with matrices, as JSON.

Matrices by vectors read memory, matrices by matrices compute; both with the kernels of oneDNN that
vLLM calls on a CPU, on matrices of the target's size that together exceed the caches.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

import torch

_MATRICES, _INPUTS, _OUTPUTS = 48, 768, 2_048
_WIDE = 256


def least_s(work: Callable[[], object], rounds: int) -> float:
    """The shortest time of `work`: whatever else the machine does makes it longer."""
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def rates(dtype: torch.dtype) -> dict[str, float]:
    """Bytes per second of reading weights for one vector, and products per second of many."""
    from vllm import _custom_ops as kernels

    weights = [
        torch.randn(_OUTPUTS, _INPUTS, dtype=torch.float32).to(dtype) for _ in range(_MATRICES)
    ]
    packed = [kernels.create_onednn_mm(weight.t(), 32) for weight in weights]

    def multiply(rows: int, times: int) -> float:
        x = torch.randn(rows, _INPUTS, dtype=torch.float32).to(dtype)
        return least_s(lambda: [kernels.onednn_mm(one, x, None) for one in packed], times)

    size = _MATRICES * _INPUTS * _OUTPUTS
    return {
        "bandwidth_bytes_s": size * weights[0].element_size() / multiply(1, 60),
        "flops": 2 * size * _WIDE / multiply(_WIDE, 12),
    }


def copying() -> float:
    """Bytes per second of copying memory that no cache holds."""
    source = torch.zeros(1 << 27, dtype=torch.uint8)
    target = torch.empty_like(source)
    return (1 << 27) / least_s(lambda: target.copy_(source), 20)


def main() -> None:
    """Print the rates of both number formats and of copying."""
    threads, *cores = map(int, sys.argv[1:])
    os.sched_setaffinity(0, cores)
    torch.set_num_threads(threads)
    from vllm.platforms import current_platform

    current_platform.import_kernels()
    found: dict[str, object] = {
        "bf16": rates(torch.bfloat16),
        "fp32": rates(torch.float32),
        "copy_bytes_s": copying(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
