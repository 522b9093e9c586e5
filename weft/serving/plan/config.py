"""Architectures from Hugging Face `config.json` files, and of well-known models by name.

The latter are taken from the models' public config.json files on the hub, under the repository
that each entry names, so a plan needs no files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from weft.core.errors import ModelNotFound, SpecError
from weft.serving.plan.architecture import Architecture, Experts, Latent
from weft.serving.weights import locate

_MAX_FILE_BYTES = 4 << 20
_CHECKPOINTS = {"bfloat16": "bf16", "float16": "bf16", "float32": "fp32"}
_QUANTIZED = {"fp8": "fp8", "awq": "int4", "gptq": "int4", "compressed-tensors": "compressed"}


class Config:
    """The fields of one file. Errors name a field that is missing or of the wrong kind."""

    def __init__(self, fields: Mapping[str, object], name: str) -> None:
        text = fields.get("text_config")  # multimodal models nest the decoder
        self._fields = text if isinstance(text, dict) else fields
        self.name = name

    def given(self, *names: str) -> object:
        """The first of `names` that is present and not null; else None."""
        return next((self._fields[n] for n in names if self._fields.get(n) is not None), None)

    def count(self, *names: str, default: int | None = None) -> int:
        """A whole number from 1. Raises: `SpecError` naming the field."""
        value = self.given(*names)
        if value is None and default is not None:
            return default
        if value is None:
            raise SpecError(
                f"the config of {self.name} has no `{names[0]}`",
                hint="give the folder of a decoder-only model with its complete config.json",
            )
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**40:
            raise SpecError(
                f"`{names[0]}` in the config of {self.name} is {value!r:.60}",
                hint="it counts something: a whole number from 1",
            )
        return value

    def switch(self, name: str, default: bool) -> bool:
        """True or false. Raises: `SpecError` naming the field."""
        value = self.given(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise SpecError(f"`{name}` in the config of {self.name} is {value!r:.60}, no boolean")
        return value

    def section(self, name: str) -> Mapping[str, object]:
        """A nested table; empty where it is missing."""
        value = self.given(name)
        return value if isinstance(value, dict) else {}


def read_config(path: Path, name: str) -> Architecture:
    """The architecture in a file `config.json`. Raises: `SpecError` for an invalid file."""
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise SpecError(f"{path} is too large for a model's config")
        fields = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{path} is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise SpecError(f"{path} holds no JSON object")
    return architecture(fields, name)


def architecture(fields: Mapping[str, object], name: str) -> Architecture:
    """The architecture that Hugging Face fields describe.

    Raises: `SpecError` naming the first field that is missing, wrong, or of another architecture.
    """
    config = Config(fields, name)
    hidden = config.count("hidden_size", "n_embd")
    layers = config.count("num_hidden_layers", "n_layer")
    heads = config.count("num_attention_heads", "n_head")
    kind = config.given("model_type")
    experts = _experts(config)
    if layers > 10_000:
        raise SpecError(f"`num_hidden_layers` in the config of {name} is {layers}")
    latent = _latent(config)
    if latent is None and config.given("head_dim") is None and hidden % heads:
        raise SpecError(f"the config of {name} has no `head_dim`, and {heads} heads do not divide")
    windowed = _windowed_layers(config, layers)
    checkpoint, block = _checkpoint(config)
    return Architecture(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=config.count("num_key_value_heads", default=heads),
        head_dim=config.count("head_dim", default=max(1, hidden // heads)),
        mlp_width=config.count(
            "intermediate_size", *(("moe_intermediate_size",) if experts else ())
        ),
        vocab=config.count("vocab_size"),
        context_tokens=config.count("max_position_embeddings", "n_positions"),
        tied=config.switch("tie_word_embeddings", False),
        checkpoint=checkpoint,
        weight_block=block,
        attention_bias=config.switch("attention_bias", kind in ("qwen2", "qwen2_moe")),
        query_key_norm=kind in ("qwen3", "qwen3_moe", "gemma3_text"),
        latent=latent,
        experts=experts,
        dense_layers=_dense_layers(config, layers) if experts else frozenset(),
        window=config.count("sliding_window") if windowed else None,
        windowed_layers=windowed,
    )


def _experts(config: Config) -> Experts | None:
    names = ("num_experts", "num_local_experts", "n_routed_experts")
    if config.given(*names) is None:
        return None
    number = config.count(*names)
    width = config.count("moe_intermediate_size", "intermediate_size")
    per_token = config.count("num_experts_per_tok", "num_experts_per_token")
    if per_token > number:
        raise SpecError(f"{config.name} sends a token to {per_token} of {number} experts")
    shared = 0
    if config.given("shared_expert_intermediate_size") is not None:
        shared = config.count("shared_expert_intermediate_size")
    elif config.given("n_shared_experts") is not None:
        shared = config.count("n_shared_experts") * width
    return Experts(number, per_token, width, shared)


def _dense_layers(config: Config, layers: int) -> frozenset[int]:
    """Layers without experts: the first few (DeepSeek), named ones, or all but each nth (Qwen)."""
    first = config.given("first_k_dense_replace")
    named = config.given("mlp_only_layers")
    step = config.count("decoder_sparse_step", "moe_layer_freq", default=1)
    dense = {n for n in range(layers) if (n + 1) % step}
    if isinstance(first, int):
        dense |= set(range(min(first, layers)))
    if isinstance(named, list):
        dense |= {n for n in named if isinstance(n, int)}
    return frozenset(dense)


def _latent(config: Config) -> Latent | None:
    if config.given("kv_lora_rank") is None:
        return None
    query = None if config.given("q_lora_rank") is None else config.count("q_lora_rank")
    return Latent(
        query,
        config.count("kv_lora_rank"),
        config.count("qk_nope_head_dim"),
        config.count("qk_rope_head_dim"),
        config.count("v_head_dim"),
    )


def _windowed_layers(config: Config, layers: int) -> int:
    kinds = config.given("layer_types")
    if config.given("sliding_window") is None or not config.switch("use_sliding_window", True):
        return 0
    if isinstance(kinds, list):
        return sum(kind == "sliding_attention" for kind in kinds)
    return layers


def _checkpoint(config: Config) -> tuple[str, int | None]:
    """The number format of the stored weights, and the side of their blocks if they have any."""
    stored = config.section("quantization_config")
    if not stored:
        return _CHECKPOINTS.get(str(config.given("torch_dtype", "dtype")), "bf16"), None
    method = str(stored.get("quant_method"))
    if method not in _QUANTIZED or _QUANTIZED[method] == "compressed":
        raise SpecError(
            f"{config.name} is stored as {method!r:.40}, which the planner does not know",
            hint="plan with the config of the unquantized model; it tries fp8 and int4 too",
        )
    if _QUANTIZED[method] == "int4" and stored.get("bits", 4) != 4:
        raise SpecError(f"{config.name} is stored in {stored.get('bits')!r:.20} bits, not in 4")
    side = stored.get("weight_block_size")
    block = side[0] if isinstance(side, list) and side and isinstance(side[0], int) else None
    return _QUANTIZED[method], block


@dataclass(frozen=True, slots=True)
class KnownModel:
    """`repository` is where the fields were published, and the name that a server loads."""

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


SHAPES: Mapping[str, KnownModel] = {
    "smollm2-135m-instruct": KnownModel(
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        _dense("llama", 30, 576, 9, 3, 1_536, 49_152, 8_192, tied=True),
    ),
    "llama-3.1-8b": KnownModel(
        "meta-llama/Llama-3.1-8B-Instruct",
        _dense("llama", 32, 4_096, 32, 8, 14_336, 128_256, 131_072),
    ),
    "llama-3.1-70b": KnownModel(
        "meta-llama/Llama-3.1-70B-Instruct",
        _dense("llama", 80, 8_192, 64, 8, 28_672, 128_256, 131_072),
    ),
    "llama-3.1-405b": KnownModel(
        "meta-llama/Llama-3.1-405B-Instruct",
        _dense("llama", 126, 16_384, 128, 8, 53_248, 128_256, 131_072),
    ),
    "qwen3-8b": KnownModel(
        "Qwen/Qwen3-8B",
        _dense("qwen3", 36, 4_096, 32, 8, 12_288, 151_936, 40_960, head_dim=128),
    ),
    "qwen3-32b": KnownModel(
        "Qwen/Qwen3-32B",
        _dense("qwen3", 64, 5_120, 64, 8, 25_600, 151_936, 40_960, head_dim=128),
    ),
    "qwen3-235b-a22b": KnownModel(
        "Qwen/Qwen3-235B-A22B",
        _dense(
            "qwen3_moe", 94, 4_096, 64, 4, 12_288, 151_936, 40_960,
            head_dim=128, num_experts=128, num_experts_per_tok=8, moe_intermediate_size=1_536,
        ),
    ),
    "mixtral-8x7b": KnownModel(
        "mistralai/Mixtral-8x7B-Instruct-v0.1",
        _dense(
            "mixtral", 32, 4_096, 32, 8, 14_336, 32_000, 32_768,
            num_local_experts=8, num_experts_per_tok=2,
        ),
    ),
    "deepseek-v3": KnownModel(
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
