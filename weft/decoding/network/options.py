"""How a network is computed. Knows nothing of torch."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, get_args

Dtype: TypeAlias = Literal["auto", "float32", "bfloat16"]
Quantization: TypeAlias = Literal["auto", "none", "int8", "int4"]
Graphs: TypeAlias = Literal["auto", "off"]


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """dtype: `auto` is bfloat16 where the machine computes in it, else float32.
    quantization: on a CPU with kernels for it, `int4` keeps the weights of the layers in 4 bits, by
    groups of 32 inputs, and those of the head in 8, and reads prompts as `int8` does (in float32:
    prompts and the head as they are); `int8` keeps all in 8 bits and quantises what they are
    multiplied with, which is the fastest for many rows;
    `none` computes in `dtype`.
    `auto` is `int4` for weights that have at most 16 levels in each group already, as those of a
    file of 4 bits do, else `none`; with `dtype: float32` it is `none`.
    threads: None leaves one core to the rest of the program (see `cores`).
    graphs: `auto` replays passes whose shape comes again as CUDA graphs, on a GPU that has them.
    max_context_tokens: prompt and answer together; at most what the model was trained for, which
    is what None stands for.

    Raises: `ValueError` for sizes below one and for other dtypes, quantizations and graphs,
    `TypeError` for sizes that are no whole numbers.
    """

    dtype: Dtype = "auto"
    device: str = "cpu"
    quantization: Quantization = "auto"
    threads: int | None = None
    max_context_tokens: int | None = None
    graphs: Graphs = field(default="auto", kw_only=True)

    def __post_init__(self) -> None:
        if self.dtype not in get_args(Dtype):
            raise ValueError(f"dtype is one of {', '.join(get_args(Dtype))}, not {self.dtype!r}")
        if self.quantization not in get_args(Quantization):
            names = ", ".join(get_args(Quantization))
            raise ValueError(f"quantization is one of {names}, not {self.quantization!r}")
        if self.graphs not in get_args(Graphs):
            raise ValueError(f"graphs are one of auto, off, not {self.graphs!r}")
        if not isinstance(self.device, str):
            raise TypeError(f"device is a name such as cpu, not {self.device!r}")
        for name in ("threads", "max_context_tokens"):
            check_size(name, getattr(self, name))


def check_size(name: str, size: object) -> None:
    """None is any. Raises: `TypeError` for what is no whole number, `ValueError` below 1."""
    if size is None:
        return
    if not isinstance(size, int) or isinstance(size, bool):
        raise TypeError(f"{name} must be a whole number, not {size!r}")
    if size < 1:
        raise ValueError(f"{name} must be at least 1, not {size}")


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
