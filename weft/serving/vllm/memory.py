"""How much memory keys and values get on a CPU, where nobody says it. Knows no model."""

from __future__ import annotations

import os

from weft.core.errors import SpecError
from weft.serving.vllm.installed import Platform
from weft.serving.vllm.machine import Machine
from weft.serving.vllm.spec import ServeSpec

_INHERITED = "VLLM_CPU_KVCACHE_SPACE"
_SHARE = 8
_STEP = 256 * 2**20
_LEAST = 2 * _STEP


def kv_cache_bytes(spec: ServeSpec, platform: Platform, machine: Machine) -> int | None:
    """Bytes for each rank; None: vLLM measures what its GPU has left.

    On a CPU vLLM would take nine tenths of the machine's memory for one server. Here all ranks of
    all replicas together get an eighth, in steps of 256 MiB, and each at least 512 MiB. vLLM's own
    variable `VLLM_CPU_KVCACHE_SPACE` is left to work where it is set.
    Raises: `SpecError` where both are given, for vLLM would follow its variable.
    """
    if platform != "cpu":
        return spec.kv_cache_bytes
    if os.environ.get(_INHERITED):
        if spec.kv_cache_bytes is not None:
            raise SpecError(
                f"{_INHERITED} is set and would win over `kv_cache_bytes`",
                hint=f"unset {_INHERITED}",
            )
        return None
    if spec.kv_cache_bytes is not None:
        return spec.kv_cache_bytes
    each = machine.memory_bytes // _SHARE // (spec.local_ranks * spec.replicas)
    return max(each // _STEP * _STEP, _LEAST)
