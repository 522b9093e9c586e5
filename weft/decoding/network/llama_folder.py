"""Models of the Llama family by their files alone, for layers that will be fused.

The import of transformers' models takes seconds. These have of them what a `Network` uses, under
the same names, and no forward method: `FusedDecoder` runs them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

_CLASSES: Final = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
}
_WEIGHTS: Final = "model.safetensors"


@dataclass(slots=True)
class LlamaConfig:
    """Of `config.json` what the layers need, and of `generation_config.json` all."""

    name_or_path: str
    model_type: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope_theta: float
    biases: frozenset[str]
    generation: dict[str, Any]
    hidden_act: str = "silu"

    def get_text_config(self) -> LlamaConfig:
        """Itself: it has no other part."""
        return self


class LlamaGenerationConfig:
    """Has of transformers' `GenerationConfig` what `Network` reads."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.eos_token_id: int | list[int] | None = values.get("eos_token_id")
        self._values = values

    def to_diff_dict(self) -> dict[str, Any]:
        """All of the file's values."""
        return self._values


class LlamaModel(nn.Module):  # type: ignore[misc]
    """The modules of a causal language model of the family, with weights yet to be assigned."""

    base_model_prefix = "model"

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.generation_config = LlamaGenerationConfig(config.generation)
        self.model = _Body(config)
        self.lm_head = _linear(config.hidden_size, config.vocab_size, False)

    @property
    def base_model(self) -> nn.Module:
        return self.model

    @property
    def dtype(self) -> torch.dtype:
        dtype: torch.dtype = self.model.norm.weight.dtype
        return dtype

    @property
    def device(self) -> torch.device:
        device: torch.device = self.model.norm.weight.device
        return device

    def get_input_embeddings(self) -> nn.Module:
        """Token ids to vectors."""
        return self.model.embed_tokens

    def get_output_embeddings(self) -> nn.Module:
        """Vectors to logits."""
        return self.lm_head

    def set_output_embeddings(self, head: nn.Module) -> None:
        """Replace the head."""
        self.lm_head = head


class _Body(nn.Module):  # type: ignore[misc]
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        size = config.vocab_size, config.hidden_size
        self.embed_tokens = nn.Embedding(*size, _weight=_nowhere(*size))
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = _Norm(config)
        self.rotary_emb = _RotaryEmbedding(config)


class _Layer(nn.Module):  # type: ignore[misc]
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.self_attn = _Attention(config)
        self.mlp = _Mlp(config)
        self.input_layernorm = _Norm(config)
        self.post_attention_layernorm = _Norm(config)


class _Attention(nn.Module):  # type: ignore[misc]
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        self.scaling = config.head_dim**-0.5
        heads = config.num_attention_heads * config.head_dim
        kv_heads = config.num_key_value_heads * config.head_dim
        for name, outputs in {"q_proj": heads, "k_proj": kv_heads, "v_proj": kv_heads}.items():
            setattr(self, name, _linear(config.hidden_size, outputs, name in config.biases))
        self.o_proj = _linear(heads, config.hidden_size, "o_proj" in config.biases)


class _Mlp(nn.Module):  # type: ignore[misc]
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = _linear(width, inner, "gate_proj" in config.biases)
        self.up_proj = _linear(width, inner, "up_proj" in config.biases)
        self.down_proj = _linear(inner, width, "down_proj" in config.biases)


class _Norm(nn.Module):  # type: ignore[misc]
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.weight = nn.Parameter(_nowhere(config.hidden_size))
        self.variance_epsilon = config.rms_norm_eps


class _RotaryEmbedding(nn.Module):  # type: ignore[misc]
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        with torch.device("cpu"):  # computed, so not without a place as the weights are
            pairs = torch.arange(0, config.head_dim, 2, dtype=torch.float32)
            self.inv_freq = 1.0 / config.rope_theta ** (pairs / config.head_dim)

    def forward(
        self, x: torch.Tensor, position_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        angles = position_ids[..., None].float() * self.inv_freq
        both = torch.cat((angles, angles), dim=-1)
        return both.cos().to(x.dtype), both.sin().to(x.dtype)


def _linear(inputs: int, outputs: int, bias: bool) -> nn.Linear:
    """Without weights: to draw some without a place would import half of torch's compiler."""
    linear = nn.Linear(1, 1, bias)
    linear.in_features, linear.out_features = inputs, outputs
    linear.weight = nn.Parameter(_nowhere(outputs, inputs))
    if bias:
        linear.bias = nn.Parameter(_nowhere(outputs))
    return linear


def _nowhere(*shape: int) -> torch.Tensor:
    return torch.empty(*shape, device="meta")


def read_llama(path: Path, dtype: torch.dtype) -> LlamaModel | None:
    """The model of a folder, on the CPU; None for any other kind, and for what does not fit."""
    try:
        values = _read(path / "config.json")
        if not _is_plain(values):
            return None
        weights = load_file(path / _WEIGHTS)
        model = LlamaModel(_config(path, values, weights))
        if values.get("tie_word_embeddings", False):
            weights.setdefault("lm_head.weight", weights["model.embed_tokens.weight"])
        kept = {name: weight.to(dtype) for name, weight in weights.items()}
        model.load_state_dict(kept, assign=True)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError):
        return None
    model.requires_grad_(False).eval()
    return model


def _is_plain(values: dict[str, Any]) -> bool:
    """Whether there is nothing in a configuration that only transformers knows."""
    kind = values.get("model_type")
    rope = values.get("rope_parameters") or {"rope_type": "default"}
    windows = values.get("sliding_window") is not None and values.get("use_sliding_window", True)
    layers = set(values.get("layer_types") or ()) - {"full_attention"}
    return (
        values.get("architectures") == [_CLASSES.get(str(kind))]
        and values.get("hidden_act") == "silu"
        and rope.get("rope_type") == "default"
        and rope.get("partial_rotary_factor", 1.0) == 1.0
        and not (windows or layers or values.get("rope_scaling") or "quantization_config" in values)
    )


def _config(path: Path, values: dict[str, Any], weights: dict[str, torch.Tensor]) -> LlamaConfig:
    heads: int = values["num_attention_heads"]
    names = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")
    generation = path / "generation_config.json"
    return LlamaConfig(
        name_or_path=str(path),
        model_type=values["model_type"],
        num_attention_heads=heads,
        num_key_value_heads=values.get("num_key_value_heads") or heads,
        head_dim=values.get("head_dim") or values["hidden_size"] // heads,
        max_position_embeddings=values["max_position_embeddings"],
        rms_norm_eps=values["rms_norm_eps"],
        rope_theta=(values.get("rope_parameters") or values)["rope_theta"],
        biases=frozenset(name.split(".")[-2] for name in weights if name.endswith(".bias")),
        generation=_read(generation) if generation.exists() else _generation(values),
        **{name: values[name] for name in names},
    )


def _generation(values: dict[str, Any]) -> dict[str, Any]:
    return {"eos_token_id": values.get("eos_token_id")}


def _read(file: Path) -> dict[str, Any]:
    values = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(values, dict):
        raise ValueError(f"{file.name} is no object")  # noqa: TRY004 - as for any other broken file
    return values
