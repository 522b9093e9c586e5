"""A `ServeSpec` as arguments of vLLM. All of vLLM's flags are here.

`refusals` refuses combinations that cannot work.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from weft.core.errors import SpecError
from weft.serving.vllm.launch.decoders import speculative_arguments
from weft.serving.vllm.launch.diffusion import canvas_arguments
from weft.serving.vllm.launch.engine import Engine, Platform
from weft.serving.vllm.launch.machine import HostResources
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.vllm.launch.weights import ModelWeights, adapter_arguments

if TYPE_CHECKING:
    from weft.decoding.diffusion.models.folder import ModelDescription


FLAG = "--structured-outputs-config"


def constraint_arguments(spec: ServeSpec, engine: Engine) -> Iterator[str]:
    """Select vLLM's engine for schemas and grammars, unless `extra` selects one.

    A vLLM server uses a single such engine. By default the first constrained request decides which,
    and requests for another one fail from then on. Grammars are written for `guidance`, which
    supports schemas too. Optional white space is disabled: small models write it endlessly.
    """
    if _ours(spec, engine):
        yield from (f"{FLAG}.backend", "guidance", f"{FLAG}.disable_any_whitespace", "true")


def constraint_environment(spec: ServeSpec, engine: Engine) -> dict[str, str]:
    """`guidance` cannot read vLLM's tags for tool calls. With the tags switched off, required calls
    still have to follow the schemas of their tools.
    """
    tagged = _ours(spec, engine) and spec.tool_parser is not None
    return {"VLLM_ENFORCE_STRICT_TOOL_CALLING": "0"} if tagged else {}


def _ours(spec: ServeSpec, engine: Engine) -> bool:
    return FLAG in engine.flags and not any(word.startswith(FLAG) for word in spec.extra)


_INHERITED = "VLLM_CPU_KVCACHE_SPACE"
_SHARE = 8
_STEP = 256 * 2**20
_LEAST = 2 * _STEP


def kv_cache_bytes(spec: ServeSpec, platform: Platform, machine: HostResources) -> int | None:
    """Bytes per rank; None: vLLM measures the free memory of its GPU.

    On a CPU vLLM would take nine tenths of the machine's memory for one server. Here all ranks of
    all replicas together get an eighth, in steps of 256 MiB, and each rank at least 512 MiB. If
    vLLM's own variable `VLLM_CPU_KVCACHE_SPACE` is set, it applies.
    Raises: `SpecError` where both are set, as vLLM would follow its variable.
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


# Clients have no other way to learn which tokens are special.
_TOKENIZER_INFO = "--enable-tokenizer-info-endpoint"
_VALUES = {
    "dtype": "--dtype",
    "quantization": "--quantization",
    "max_context_tokens": "--max-model-len",
    "max_seqs": "--max-num-seqs",
    "max_batched_tokens": "--max-num-batched-tokens",
    "block_size": "--block-size",
}


def arguments(
    spec: ServeSpec,
    engine: Engine,
    weights: ModelWeights,
    port: int,
    machine: HostResources,
    canvas: ModelDescription | None = None,
) -> tuple[str, ...]:
    """The arguments of vLLM's server for one replica, in a fixed order.

    `canvas`: description of a diffusion model; None for other models.
    """
    return (
        "--model",
        weights.argument,
        "--served-model-name",
        spec.name,
        "--host",
        spec.host,
        "--port",
        str(port),
        "--scheduling-policy",
        "priority",
        "--enable-prompt-tokens-details",
        "--disable-uvicorn-access-log",
        *_parallel(spec),
        *_values(spec),
        *_switches(spec, engine),
        *_memory(spec, engine, machine),
        *(constraint_arguments(spec, engine) if canvas is None else ()),
        *([_TOKENIZER_INFO] if _TOKENIZER_INFO in engine.flags else []),
        *adapter_arguments(spec.adapters, spec.name),
        *_parsers(spec),
        *(
            speculative_arguments(spec.decode, engine, weights.draft)
            if canvas is None
            else canvas_arguments(spec, canvas)
        ),
        *spec.extra,
    )


def _parallel(spec: ServeSpec) -> Iterator[str]:
    for flag, ranks in (
        ("--tensor-parallel-size", spec.tp),
        ("--pipeline-parallel-size", spec.pp),
        ("--data-parallel-size", spec.dp),
    ):
        if ranks > 1:
            yield from (flag, str(ranks))
    if spec.nodes > 1:
        yield from ("--distributed-executor-backend", "ray")
        if spec.dp > 1:
            local = max(spec.dp // spec.nodes, 1)
            yield from ("--data-parallel-backend", "ray", "--data-parallel-size-local", str(local))
    elif spec.tp * spec.pp > 1:
        yield from ("--distributed-executor-backend", "mp")


def _values(spec: ServeSpec) -> Iterator[str]:
    for name, flag in _VALUES.items():
        value = getattr(spec, name)
        if value not in (None, "auto"):
            yield from (flag, str(value))


def _switches(spec: ServeSpec, engine: Engine) -> Iterator[str]:
    if spec.chunked_prefill is not None:
        yield "--enable-chunked-prefill" if spec.chunked_prefill else "--no-enable-chunked-prefill"
    if not spec.prefix_caching:
        yield "--no-enable-prefix-caching"
    if spec.eager or (spec.eager is None and engine.platform == "cpu"):
        yield "--enforce-eager"


def _memory(spec: ServeSpec, engine: Engine, machine: HostResources) -> Iterator[str]:
    size = kv_cache_bytes(spec, engine.platform, machine)
    if size is not None:
        yield from ("--kv-cache-memory-bytes", str(size))


def _parsers(spec: ServeSpec) -> Iterator[str]:
    if spec.tool_parser is not None:
        yield from ("--enable-auto-tool-choice", "--tool-call-parser", spec.tool_parser)
    if spec.reasoning_parser is not None:
        yield from ("--reasoning-parser", spec.reasoning_parser)
