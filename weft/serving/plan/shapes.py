"""Shapes of well-known models by name, so that a plan needs no files.

The figures are those of the models' public config.json files on the Hugging Face hub, under the
repository each entry names. Knows no weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from weft.core.errors import ModelNotFound
from weft.serving.plan.architecture import Architecture
from weft.serving.plan.config import architecture, read_config
from weft.serving.weights import locate


@dataclass(frozen=True, slots=True)
class Shape:
    """`repository` is where the fields were published, and what a server would load."""

    repository: str
    fields: Mapping[str, object]


def _dense(
    kind: str, layers: int, hidden: int, heads: int, kv_heads: int, width: int, vocab: int,
    context: int, *, tied: bool = False, **more: object,
) -> dict[str, object]:  # fmt: skip
    return {
        "model_type": kind,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": width,
        "vocab_size": vocab,
        "max_position_embeddings": context,
        "tie_word_embeddings": tied,
        "torch_dtype": "bfloat16",
        **more,
    }


SHAPES: Mapping[str, Shape] = {
    "smollm2-135m-instruct": Shape(
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        _dense("llama", 30, 576, 9, 3, 1_536, 49_152, 8_192, tied=True),
    ),
    "llama-3.1-8b": Shape(
        "meta-llama/Llama-3.1-8B-Instruct",
        _dense("llama", 32, 4_096, 32, 8, 14_336, 128_256, 131_072),
    ),
    "llama-3.1-70b": Shape(
        "meta-llama/Llama-3.1-70B-Instruct",
        _dense("llama", 80, 8_192, 64, 8, 28_672, 128_256, 131_072),
    ),
    "llama-3.1-405b": Shape(
        "meta-llama/Llama-3.1-405B-Instruct",
        _dense("llama", 126, 16_384, 128, 8, 53_248, 128_256, 131_072),
    ),
    "qwen3-8b": Shape(
        "Qwen/Qwen3-8B",
        _dense("qwen3", 36, 4_096, 32, 8, 12_288, 151_936, 40_960, head_dim=128),
    ),
    "qwen3-32b": Shape(
        "Qwen/Qwen3-32B",
        _dense("qwen3", 64, 5_120, 64, 8, 25_600, 151_936, 40_960, head_dim=128),
    ),
    "qwen3-235b-a22b": Shape(
        "Qwen/Qwen3-235B-A22B",
        _dense(
            "qwen3_moe", 94, 4_096, 64, 4, 12_288, 151_936, 40_960,
            head_dim=128, num_experts=128, num_experts_per_tok=8, moe_intermediate_size=1_536,
        ),
    ),
    "mixtral-8x7b": Shape(
        "mistralai/Mixtral-8x7B-Instruct-v0.1",
        _dense(
            "mixtral", 32, 4_096, 32, 8, 14_336, 32_000, 32_768,
            num_local_experts=8, num_experts_per_tok=2,
        ),
    ),
    "deepseek-v3": Shape(
        "deepseek-ai/DeepSeek-V3",
        _dense(
            "deepseek_v3", 61, 7_168, 128, 128, 18_432, 129_280, 163_840,
            n_routed_experts=256, num_experts_per_tok=8, n_shared_experts=1,
            moe_intermediate_size=2_048, first_k_dense_replace=3, q_lora_rank=1_536,
            kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
            quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]},
        ),
    ),
}  # fmt: skip


def find_architecture(model: str) -> tuple[Architecture, str]:
    """The architecture of `model`, and the name under which a server finds its weights.

    `model` is a model on this machine, a folder with a config.json, or a name in `SHAPES`.
    Raises: `ModelNotFound` listing the names; `SpecError` for a config that cannot be used.
    """
    known = SHAPES.get(model.lower())
    try:
        folder: Path = locate(model)
    except ModelNotFound as missing:
        if known is None:
            raise ModelNotFound(
                missing.message, hint=f"shapes the planner knows: {', '.join(SHAPES)}"
            ) from missing
        return architecture(known.fields, model.lower()), known.repository
    return read_config(folder / "config.json", folder.name), model
