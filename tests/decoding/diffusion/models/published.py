"""Tiny models of the published architectures, written as their folders are published.

Names and settings are spelled out here, not taken from the code under test.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

VOCABULARY = 64
MASK, END, OTHER_END = 61, 2, 3

LLADA: dict[str, Any] = {
    "model_type": "llada",
    "architectures": ["LLaDAModelLM"],
    "auto_map": {"AutoModelForCausalLM": "modeling_llada.LLaDAModelLM"},
    "activation_type": "silu",
    "alibi": False,
    "attention_layer_norm": False,
    "bias_for_layer_norm": False,
    "block_group_size": 1,
    "block_type": "llama",
    "d_model": 32,
    "embedding_size": VOCABULARY,
    "eos_token_id": END,
    "include_bias": False,
    "include_qkv_bias": False,
    "input_emb_norm": False,
    "layer_norm_type": "rms",
    "layer_norm_with_affine": True,
    "mask_token_id": MASK,
    "max_sequence_length": 256,
    "mlp_hidden_size": 48,
    "mlp_ratio": 4,
    "multi_query_attention": None,
    "n_heads": 4,
    "n_kv_heads": 4,
    "n_layers": 2,
    "pad_token_id": END,
    "rms_norm_eps": 1e-5,
    "rope": True,
    "rope_full_precision": True,
    "rope_theta": 500000.0,
    "scale_logits": False,
    "vocab_size": VOCABULARY,
    "weight_tying": False,
}
QWEN: dict[str, Any] = {
    "attention_dropout": 0.0,
    "eos_token_id": END,
    "hidden_act": "silu",
    "hidden_size": 32,
    "intermediate_size": 48,
    "max_position_embeddings": 4096,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": VOCABULARY,
}
DREAM = QWEN | {
    "model_type": "Dream",
    "architectures": ["DreamModel"],
    "mask_token_id": MASK,
    "use_mrope": False,
}
DIMPLE = QWEN | {"model_type": "dimple", "architectures": ["DimpleModel"], "mask_token_id": MASK}
SDAR = QWEN | {
    "model_type": "sdar",
    "architectures": ["SDARForCausalLM"],
    "attention_bias": False,
    "block_size": 4,
    "head_dim": 16,
    "mask_token_id": MASK,
}
# config.json of Efficient-Large-Model/Fast_dLLM_v2_7B, smaller; its configuration.py names the
# weights in its plan for tensor parallelism
FAST_DLLM = QWEN | {
    "auto_map": {"AutoModelForCausalLM": "modeling.Fast_dLLM_QwenForCausalLM"},
    "conplemenrary_mask": True,
    "layer_types": ["full_attention", "full_attention"],
    "model_type": "Fast_dLLM_Qwen",
    "architectures": ["Fast_dLLM_QwenForCausalLM"],
    "bd_size": 8,
    "tie_word_embeddings": True,
    "mask_token_id": MASK,
}
# config.json of inclusionAI/LLaDA2.1-mini, smaller
LLADA2: dict[str, Any] = {
    "architectures": ["LLaDA2MoeModelLM"],
    "attention_dropout": 0.0,
    "auto_map": {"AutoModelForCausalLM": "modeling_llada2_moe.LLaDA2MoeModelLM"},
    "dtype": "bfloat16",
    "embedding_dropout": 0.0,
    "first_k_dense_replace": 1,
    "head_dim": 16,
    "hidden_act": "silu",
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 48,
    "mask_token_id": MASK,
    "max_position_embeddings": 256,
    "max_window_layers": 28,
    "model_type": "llada2_moe",
    "moe_intermediate_size": 8,
    "moe_router_enable_expert_bias": True,
    "n_group": 4,
    "norm_head": False,
    "norm_softmax": False,
    "norm_topk_prob": True,
    "num_attention_heads": 4,
    "num_experts": 12,
    "num_experts_per_tok": 3,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "num_shared_experts": 1,
    "output_dropout": 0.0,
    "output_router_logits": False,
    "eos_token_id": END,
    "pad_token_id": END,
    "partial_rotary_factor": 0.5,
    "rms_norm_eps": 1e-6,
    "rope_scaling": None,
    "rope_theta": 600000,
    "rotary_dim": 8,
    "routed_scaling_factor": 2.5,
    "router_dtype": "fp32",
    "score_function": "sigmoid",
    "sliding_window": 4096,
    "tie_word_embeddings": False,
    "topk_group": 2,
    "use_bias": False,
    "use_cache": False,
    "use_qk_norm": True,
    "use_qkv_bias": False,
    "use_rmsnorm": True,
    "use_sliding_window": False,
    "vocab_size": VOCABULARY,
}


def a2d(body: str) -> dict[str, Any]:
    names = {"llama": "A2DLlama", "qwen2": "A2DQwen2", "qwen3": "A2DQwen3"}
    more: dict[str, Any] = {"qwen3": {"head_dim": 16, "attention_bias": False}}.get(body, {})
    return QWEN | {
        "model_type": f"a2d-{body}",
        "architectures": [f"{names[body]}LMHeadModel"],
        "tie_word_embeddings": True,
        **more,
    }


def own(body: str, **traits: Any) -> dict[str, Any]:
    config = {k: v for k, v in a2d(body).items() if k != "architectures"}
    said = {"format": 1, "attention": "full", "mask_id": MASK, **traits}
    return config | {"model_type": body, "weft_diffusion": said}


def qwen_like(config: dict[str, Any], body: str) -> PreTrainedModel:
    """transformers' own model with random weights, of the shape that the config calls for."""
    torch.manual_seed(1)
    size = {k: config[k] for k in QWEN if k not in {"rope_theta", "rope_scaling", "eos_token_id"}}
    size |= {k: config[k] for k in ("head_dim", "attention_bias") if k in config}
    size["rope_parameters"] = {"rope_type": "default", "rope_theta": config["rope_theta"]}
    kinds = {
        "llama": (LlamaConfig, LlamaForCausalLM),
        "qwen2": (Qwen2Config, Qwen2ForCausalLM),
        "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    }
    if body == "llama":
        size = {k: v for k, v in size.items() if "sliding" not in k}
    make_config, make_model = kinds[body]
    model = make_model(make_config(**size, initializer_range=0.3)).eval()
    for name, parameter in model.named_parameters():
        if "norm" in name or "bias" in name:  # else they are all ones and zeros
            parameter.data += torch.randn_like(parameter) * 0.2
    return model


def llada_weights(config: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Random weights under LLaDA's published names."""
    torch.manual_seed(2)
    width, inner, words = config["d_model"], config["mlp_hidden_size"], config["embedding_size"]
    kv = width // config["n_heads"] * config["n_kv_heads"]

    def made(*shape: int) -> torch.Tensor:
        return torch.randn(shape) * 0.3 + (1.0 if len(shape) == 1 else 0.0)

    weights = {
        "model.transformer.wte.weight": made(words, width),
        "model.transformer.ln_f.weight": made(width),
        "model.transformer.ff_out.weight": made(words, width),
    }
    for layer in range(config["n_layers"]):
        block = f"model.transformer.blocks.{layer}."
        weights |= {
            block + "attn_norm.weight": made(width),
            block + "ff_norm.weight": made(width),
            block + "q_proj.weight": made(width, width),
            block + "k_proj.weight": made(kv, width),
            block + "v_proj.weight": made(kv, width),
            block + "attn_out.weight": made(width, width),
            block + "ff_proj.weight": made(inner, width),
            block + "up_proj.weight": made(inner, width),
            block + "ff_out.weight": made(width, inner),
        }
    return weights


def llada2_weights(config: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Random weights under LLaDA2's published names (modeling_llada2_moe.py of LLaDA2.0-mini)."""
    torch.manual_seed(4)
    width, head = config["hidden_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head

    def made(*shape: int) -> torch.Tensor:
        return torch.randn(shape) * 0.3 + (1.0 if len(shape) == 1 else 0.0)

    def mlp(name: str, inner: int) -> dict[str, torch.Tensor]:
        return {
            f"{name}.gate_proj.weight": made(inner, width),
            f"{name}.up_proj.weight": made(inner, width),
            f"{name}.down_proj.weight": made(width, inner),
        }

    weights = {
        "model.word_embeddings.weight": made(config["vocab_size"], width),
        "model.norm.weight": made(width),
        "lm_head.weight": made(config["vocab_size"], width),
    }
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        weights |= {
            at + "input_layernorm.weight": made(width),
            at + "post_attention_layernorm.weight": made(width),
            at + "attention.query_key_value.weight": made(queries + 2 * keys, width),
            at + "attention.query_layernorm.weight": made(head),
            at + "attention.key_layernorm.weight": made(head),
            at + "attention.dense.weight": made(width, queries),
        }
        if layer < config["first_k_dense_replace"]:
            weights |= mlp(at + "mlp", config["intermediate_size"])
            continue
        experts, inner = config["num_experts"], config["moe_intermediate_size"]
        weights[at + "mlp.gate.weight"] = made(experts, width)
        weights[at + "mlp.gate.expert_bias"] = torch.randn(experts)
        for expert in range(experts):
            weights |= mlp(f"{at}mlp.experts.{expert}", inner)
        weights |= mlp(at + "mlp.shared_experts", inner * config["num_shared_experts"])
    return weights


def write(
    folder: Path,
    config: dict[str, Any],
    weights: dict[str, torch.Tensor] | None = None,
    tokens: dict[str, int] | None = None,
    generation: dict[str, Any] | None = None,
) -> Path:
    """A folder as it is published; `tokens`: its special tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if weights is not None:
        plain = {name: tensor.detach().clone().contiguous() for name, tensor in weights.items()}
        save_file(plain, folder / "model.safetensors", {"format": "pt"})
    if tokens is not None:
        added = {str(number): {"content": text} for text, number in tokens.items()}
        (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))
    return folder


def weights_of(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """As they are published: what is tied is there once."""
    weights = dict(model.state_dict())
    if model.config.tie_word_embeddings:
        weights.pop("lm_head.weight", None)
    return weights
