"""How much memory keys and values get on a CPU, where nobody says it. Knows no model."""

from __future__ import annotations

from weft.serving.vllm.installed import Platform
from weft.serving.vllm.machine import Machine
from weft.serving.vllm.spec import ServeSpec

_SHARE = 8
_STEP = 256 * 2**20
_LEAST = 2 * _STEP


def kv_cache_bytes(spec: ServeSpec, platform: Platform, machine: Machine) -> int | None:
    """Bytes for each rank; None: vLLM measures what its GPU has left.

    On a CPU vLLM would take nine tenths of the machine's memory for one server. Here all ranks of
    all replicas together get an eighth, in steps of 256 MiB, and each at least 512 MiB.
    """
    if spec.kv_cache_bytes is not None or platform != "cpu":
        return spec.kv_cache_bytes
    each = machine.memory_bytes // _SHARE // (spec.ranks * spec.replicas)
    return max(each // _STEP * _STEP, _LEAST)
