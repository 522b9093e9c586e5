"""Drafters with random weights, written key by key as others publish them.

Keys of configs and names of tensors are spelled out here, from public files:

EAGLE-3     SafeAILab/EAGLE eagle/model/cnets.py (`Model`, `LlamaDecoderLayeremb`), config.json of
            yuhuili/EAGLE3-LLaMA3.1-Instruct-8B; sgl-project/SpecForge configs/qwen3-32b-eagle3.json
            and its `LlamaForCausalLMEagle3`; vllm-project/speculators models/eagle3/config.py,
            config.json of nm-testing/EAGLE3-LLaMA3.1-Instruct-8B-converted
Medusa      FasterDecoding/Medusa medusa/model/medusa_model.py, config.json of
            FasterDecoding/medusa-vicuna-7b-v1.3; vLLM's model_executor/models/medusa.py
DFlash      z-lab/dflash dflash/model.py; sgl-project/SpecForge configs/qwen3-8b-dflash.json;
            vllm-project/speculators models/dflash/config.py
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

Config = dict[str, Any]
Weights = dict[str, torch.Tensor]

WIDTH, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INNER, FEW = 48, 3, 4, 2, 16, 40, 60
TRANSFORMER = {
    "attention_bias": False,
    "attention_dropout": 0.0,
    "head_dim": HEAD_DIM,
    "hidden_act": "silu",
    "hidden_size": WIDTH,
    "initializer_range": 0.02,
    "intermediate_size": INNER,
    "max_position_embeddings": 2048,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": HEADS,
    "num_hidden_layers": 1,
    "num_key_value_heads": KV_HEADS,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-5,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "use_cache": True,
}


def made(*shape: int) -> torch.Tensor:
    return torch.randn(shape) * 0.25 + (1.0 if len(shape) == 1 else 0.0)


def mlp(prefix: str) -> Weights:
    return {
        prefix + "mlp.gate_proj.weight": made(INNER, WIDTH),
        prefix + "mlp.up_proj.weight": made(INNER, WIDTH),
        prefix + "mlp.down_proj.weight": made(WIDTH, INNER),
    }


def attention(prefix: str, entering: int, *, norms: bool) -> Weights:
    weights = {
        prefix + "self_attn.q_proj.weight": made(HEADS * HEAD_DIM, entering),
        prefix + "self_attn.k_proj.weight": made(KV_HEADS * HEAD_DIM, entering),
        prefix + "self_attn.v_proj.weight": made(KV_HEADS * HEAD_DIM, entering),
        prefix + "self_attn.o_proj.weight": made(WIDTH, HEADS * HEAD_DIM),
    }
    if norms:
        weights[prefix + "self_attn.q_norm.weight"] = made(HEAD_DIM)
        weights[prefix + "self_attn.k_norm.weight"] = made(HEAD_DIM)
    return weights


def draft_tables(vocabulary: int) -> Weights:
    """d2t: the distance from a row of the head to its token; t2d: which tokens have a row."""
    drafted = torch.randperm(vocabulary)[:FEW].sort().values
    t2d = torch.zeros(vocabulary, dtype=torch.bool)
    t2d[drafted] = True
    return {"d2t": drafted - torch.arange(FEW), "t2d": t2d, "lm_head.weight": made(FEW, WIDTH)}


def eagle3_weights(vocabulary: int, prefix: str = "midlayer.", *, norms: bool = False) -> Weights:
    torch.manual_seed(7)
    return {
        "fc.weight": made(WIDTH, 3 * WIDTH),
        "norm.weight": made(WIDTH),
        prefix + "hidden_norm.weight": made(WIDTH),
        prefix + "input_layernorm.weight": made(WIDTH),
        prefix + "post_attention_layernorm.weight": made(WIDTH),
        **attention(prefix, 2 * WIDTH, norms=norms),
        **mlp(prefix),
        **draft_tables(vocabulary),
    }


def safeai(vocabulary: int) -> tuple[Config, Weights]:
    config = {
        "architectures": ["LlamaForCausalLM"],
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "hidden_size": WIDTH,
        "initializer_range": 0.02,
        "intermediate_size": INNER,
        "max_position_embeddings": 2048,
        "model_type": "llama",
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "num_hidden_layers": 1,
        "pad_token_id": 0,
        "rms_norm_eps": 1e-05,
        "tie_word_embeddings": False,
        "torch_dtype": "float16",
        "transformers_version": "4.28.1",
        "use_cache": True,
        "vocab_size": vocabulary,
        "draft_vocab_size": FEW,
    }
    return config, eagle3_weights(vocabulary)


def specforge(vocabulary: int) -> tuple[Config, Weights]:
    config = TRANSFORMER | {
        "architectures": ["LlamaForCausalLMEagle3"],
        "draft_vocab_size": FEW,
        "dtype": "bfloat16",
        "eagle_config": {
            "eagle_aux_hidden_state_layer_ids": [0, 1, 2],
            "use_aux_hidden_state": True,
        },
        "max_window_layers": 48,
        "rope_theta": 500000.0,
        "rope_scaling": {
            "factor": 8.0,
            "high_freq_factor": 4.0,
            "low_freq_factor": 1.0,
            "original_max_position_embeddings": 64,
            "rope_type": "llama3",
        },
        "sliding_window": None,
        "use_sliding_window": False,
        "vocab_size": vocabulary,
    }
    return config, eagle3_weights(vocabulary)


def speculators(vocabulary: int) -> tuple[Config, Weights]:
    config = {
        "architectures": ["Eagle3Speculator"],
        "auto_map": {"": "eagle3.Eagle3SpeculatorConfig"},
        "draft_vocab_size": FEW,
        "eagle_aux_hidden_state_layer_ids": [0, 1, 2],
        "embed_requires_grad": False,
        "has_no_defaults_at_init": False,
        "norm_before_fc": False,
        "norm_before_residual": True,
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 5}],
            "verifier": {"architectures": ["LlamaForCausalLM"], "name_or_path": "tiny"},
        },
        "speculators_model_type": "eagle3",
        "speculators_version": "0.5.0.dev5",
        "target_hidden_size": None,
        "torch_dtype": "float32",
        "transformer_layer_config": TRANSFORMER | {"vocab_size": vocabulary},
        "transformers_version": "4.57.1",
    }
    weights = eagle3_weights(vocabulary, "layers.0.")
    return config, weights | {"embed_tokens.weight": made(vocabulary, WIDTH)}


def qwen3_eagle(vocabulary: int) -> tuple[Config, Weights]:
    config, _ = specforge(vocabulary)
    changed = {"model_type": "qwen3", "architectures": ["Eagle3Qwen3ForCausalLM"]}
    return config | changed, eagle3_weights(vocabulary, norms=True)


EAGLE3 = {
    "SafeAILab": safeai,
    "SpecForge": specforge,
    "speculators": speculators,
    "vLLM's Qwen3": qwen3_eagle,
}


def medusa_published(vocabulary: int, layers: int = 1) -> tuple[Config, Weights]:
    torch.manual_seed(8)
    config = {
        "base_model_name_or_path": "lmsys/vicuna-7b-v1.3",
        "medusa_num_heads": 3,
        "medusa_num_layers": layers,
        "transformers_version": "4.31.0",
    }
    weights: Weights = {}
    for head in range(5):  # more than the config has, as in the published files
        for layer in range(layers):
            weights[f"{head}.{layer}.linear.weight"] = made(WIDTH, WIDTH)
            weights[f"{head}.{layer}.linear.bias"] = made(WIDTH) - 1.0
        weights[f"{head}.{layers}.weight"] = made(vocabulary, WIDTH)
    return config, weights


def medusa_vllm(vocabulary: int) -> tuple[Config, Weights]:
    """Heads with a table each."""
    torch.manual_seed(9)
    config = {
        "architectures": ["MedusaModel"],
        "hidden_size": WIDTH,
        "max_paths": 64,
        "model_type": "medusa",
        "num_heads": 3,
        "num_hidden_layers": 2,
        "topk": 10,
        "vocab_size": vocabulary,
    }
    weights: Weights = {}
    for head in range(3):
        for layer in range(2):
            weights[f"blocks.{head}.layers.{layer}.weight"] = made(WIDTH, WIDTH)
        weights[f"lm_heads.{head}.weight"] = made(vocabulary, WIDTH)
    return config, weights


def medusa_shared(vocabulary: int) -> tuple[Config, Weights]:
    """Heads that share a table of the most frequent tokens."""
    config, weights = medusa_vllm(vocabulary)
    config |= {"original_lm_head": True, "truncated_vocab_size": FEW, "medusa_fc_bias": True}
    weights = {name: part for name, part in weights.items() if name.startswith("blocks")}
    for name in list(weights):
        weights[name.replace("weight", "bias")] = made(WIDTH) - 1.0
    shared = {"token_map": torch.randperm(vocabulary)[:FEW], "lm_head.weight": made(FEW, WIDTH)}
    return config, weights | shared


MEDUSA = {
    "FasterDecoding": medusa_published,
    "vLLM": medusa_vllm,
    "vLLM, one table": medusa_shared,
}


def dflash_weights(layers: int = 2) -> Weights:
    torch.manual_seed(10)
    weights = {
        "fc.weight": made(WIDTH, 2 * WIDTH),
        "hidden_norm.weight": made(WIDTH),
        "norm.weight": made(WIDTH),
    }
    for layer in range(layers):
        prefix = f"layers.{layer}."
        weights |= {
            prefix + "input_layernorm.weight": made(WIDTH),
            prefix + "post_attention_layernorm.weight": made(WIDTH),
            **attention(prefix, WIDTH, norms=True),
            **mlp(prefix),
        }
    return weights


def z_lab(vocabulary: int) -> tuple[Config, Weights]:
    config = {k: v for k, v in TRANSFORMER.items() if k not in {"mlp_bias", "pretraining_tp"}}
    config |= {
        "architectures": ["DFlashDraftModel"],
        "auto_map": {"AutoModel": "dflash.DFlashDraftModel"},
        "block_size": 5,
        "bos_token_id": 1,
        "dflash_config": {"mask_token_id": 11, "target_layer_ids": [0, 1]},
        "dtype": "bfloat16",
        "eos_token_id": 2,
        "layer_types": ["full_attention", "full_attention"],
        "max_window_layers": 2,
        "model_type": "qwen3",
        "num_hidden_layers": 2,
        "num_target_layers": LAYERS,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "vocab_size": vocabulary,
    }
    return config, dflash_weights()


def speculators_dflash(vocabulary: int) -> tuple[Config, Weights]:
    inner = {k: v for k, v in z_lab(vocabulary)[0].items() if k in TRANSFORMER}
    config = {
        "architectures": ["DFlashSpeculator"],
        "aux_hidden_state_layer_ids": [1, 2],
        "block_size": 5,
        "draft_vocab_size": FEW,
        "mask_token_id": 11,
        "projector_type": "dflash",
        "shift_label": False,
        "sliding_window_non_causal": False,
        "speculators_config": {"algorithm": "dflash"},
        "speculators_model_type": "dflash",
        "speculators_version": "0.6.0",
        "target_hidden_size": None,
        "transformer_layer_config": inner | {"vocab_size": vocabulary},
    }
    return config, dflash_weights() | draft_tables(vocabulary)


DFLASH = {"z-lab": z_lab, "speculators": speculators_dflash}


def write(
    folder: Path, config: Config, weights: Weights | None, file: str = "model.safetensors"
) -> Path:
    """The folder as it is published."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if weights is None:
        return folder
    plain = {name: tensor.contiguous() for name, tensor in weights.items()}
    if file.endswith(".safetensors"):
        save_file(plain, folder / file, {"format": "pt"})
    else:
        torch.save(plain, folder / file)
    return folder


def settings(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of the layer."""
    inner: Mapping[str, Any] = config.get("transformer_layer_config", config)
    return inner
