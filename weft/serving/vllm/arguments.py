"""A `ServeSpec` in the words of vLLM's command line; the one place that knows vLLM's flags.

Does not know which combinations work: those that cannot are refused elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weft.serving.vllm.adapters import adapter_arguments
from weft.serving.vllm.constraints import constraint_arguments
from weft.serving.vllm.diffusion.command import canvas_arguments
from weft.serving.vllm.installed import Engine
from weft.serving.vllm.machine import Machine
from weft.serving.vllm.memory import kv_cache_bytes
from weft.serving.vllm.spec import ServeSpec
from weft.serving.vllm.speculative import speculative_arguments
from weft.serving.vllm.weights import Weights

if TYPE_CHECKING:
    from weft.decoding.diffusion.models.description import Description

# Which tokens are special is nothing that clients could find out in another way.
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
    weights: Weights,
    port: int,
    machine: Machine,
    canvas: Description | None = None,
) -> tuple[str, ...]:
    """The arguments of vLLM's server for one replica, in a fixed order.

    `canvas`: what the model is, where it is a diffusion model.
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


def _memory(spec: ServeSpec, engine: Engine, machine: Machine) -> Iterator[str]:
    size = kv_cache_bytes(spec, engine.platform, machine)
    if size is not None:
        yield from ("--kv-cache-memory-bytes", str(size))


def _parsers(spec: ServeSpec) -> Iterator[str]:
    if spec.tool_parser is not None:
        yield from ("--enable-auto-tool-choice", "--tool-call-parser", spec.tool_parser)
    if spec.reasoning_parser is not None:
        yield from ("--reasoning-parser", spec.reasoning_parser)
