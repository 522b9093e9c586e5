"""A published config as a transformers config, and the check that the weights fit it.

A config is foreign input: only known keys are taken over, each within bounds, and the headers of
the weights are compared before any memory is taken for what it claims.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import torch
from safetensors import SafetensorError, safe_open
from transformers import (
    Glm4MoeConfig,
    Glm4MoeForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from weft.core.errors import CapabilityError
from weft.decoding.config_fields import ConfigFields, rope_parameters
from weft.decoding.diffusion.models.families import LayerKind, ModelFamily
from weft.decoding.diffusion.models.mixture import (
    expert_settings,
    published_shapes,
    rotated_share,
)

if TYPE_CHECKING:
    from transformers import PretrainedConfig


_CONFIGS: Final = {
    "llama": LlamaConfig,
    "qwen2": Qwen2Config,
    "qwen3": Qwen3Config,
    "glm4_moe": Glm4MoeConfig,
}
_SIZES: Final = {
    "vocab_size": (2, 1 << 20),
    "hidden_size": (1, 1 << 16),
    "intermediate_size": (1, 1 << 20),
    "num_hidden_layers": (1, 512),
    "num_attention_heads": (1, 1024),
    "max_position_embeddings": (1, 1 << 24),
}
_BIASES: Final[Mapping[LayerKind, tuple[str, ...]]] = {
    "llama": ("attention_bias", "mlp_bias"),
    "qwen2": (),
    "qwen3": ("attention_bias",),
    "glm4_moe": (),
}
_THETA: Final[Mapping[LayerKind, float]] = {
    "llama": 1e4,
    "qwen2": 1e6,
    "qwen3": 1e6,
    "glm4_moe": 1e4,
}


def config_of(config: ConfigFields, family: ModelFamily, body: LayerKind) -> PretrainedConfig:
    """The transformers config of the model's layers.

    Raises: `CapabilityError` naming the key that is missing, wrong, or of another kind of model.
    """
    for key, allowed in family.only.items():
        config.must_be(key, *allowed)
    config.must_be("quantization_config")
    published = {name: family.key(config, name) for name in (*_SIZES, "num_key_value_heads")}
    sizes = {name: config.whole(published[name], *bounds) for name, bounds in _SIZES.items()}
    if family.trained is not None:
        sizes["max_position_embeddings"] = min(sizes["max_position_embeddings"], family.trained)
    heads, width = sizes["num_attention_heads"], sizes["hidden_size"]
    shared = published["num_key_value_heads"]
    kv_heads = config.whole(shared, 1, heads, heads)
    values: dict[str, object] = {**sizes, "num_key_value_heads": kv_heads}
    if heads % kv_heads:
        raise config.wrong(shared, f"no divisor of {heads} heads")
    if "head_dim" in config:
        values["head_dim"] = config.whole("head_dim", 2, 4096)
    elif body == "qwen3":
        values["head_dim"] = 128
    elif width % heads:
        raise config.wrong(published["hidden_size"], f"no multiple of {heads} heads")
    elif body == "glm4_moe":
        values["head_dim"] = width // heads
    values["rms_norm_eps"] = config.number("rms_norm_eps", 0.0, 1.0, 1e-5)
    tied = family.key(config, "tie_word_embeddings")
    values["tie_word_embeddings"] = config.flag(tied, default=False)
    for name in _BIASES[body]:
        values[name] = config.flag(name, default=False)
    rope = rope_parameters(config, _THETA[body])
    values["rope_parameters"] = rope
    if body == "glm4_moe":
        values |= expert_settings(config)
        rope["partial_rotary_factor"] = rotated_share(config)
    return _transformers_config(config, body, values)


def _transformers_config(
    config: ConfigFields, body: LayerKind, values: Mapping[str, object]
) -> PretrainedConfig:
    try:
        return _CONFIGS[body](**values, pad_token_id=None, bos_token_id=None, eos_token_id=None)
    except (ValueError, TypeError, KeyError) as error:
        raise CapabilityError(
            f"{config.path}: no {body} model can be made of it: {error}"
        ) from error


CLASSES: Final = {
    "llama": LlamaForCausalLM,
    "qwen2": Qwen2ForCausalLM,
    "qwen3": Qwen3ForCausalLM,
    "glm4_moe": Glm4MoeForCausalLM,
}
_SINGLE: Final = "model.safetensors"
_INDEX: Final = "model.safetensors.index.json"
_LARGEST_INDEX_BYTES: Final = 1 << 25
_HEAD: Final = "lm_head.weight"

Shapes = Mapping[str, tuple[int, ...]]


def check_weights(
    folder: Path, family: ModelFamily, body: LayerKind, config: PretrainedConfig
) -> None:
    """Raise `CapabilityError` unless the folder's weights are those of such a model.

    The message names the file and the first weight that is missing, unknown or of another shape.
    """
    mixed = body == "glm4_moe"
    wanted = published_shapes(config) if mixed else _wanted_shapes(body, config)
    found = _found_shapes(folder, family)
    for name, shape in wanted.items():
        if name not in found and not (name == _HEAD and config.tie_word_embeddings):
            raise CapabilityError(
                f"{folder}: its weights have no {name}, which its config.json calls for"
            )
        if name in found and found[name] != shape:
            raise CapabilityError(
                f"{folder}: {name} is {list(found[name])} in its weights, and {list(shape)} by its"
                " config.json"
            )
    unknown = sorted(found.keys() - wanted.keys())
    if unknown:
        raise CapabilityError(
            f"{folder}: its weights have {unknown[0]}, which a {family.model_type} has not"
        )


def _wanted_shapes(body: LayerKind, config: PretrainedConfig) -> Shapes:
    with torch.device("meta"):
        model = CLASSES[body](config)
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def _found_shapes(folder: Path, family: ModelFamily) -> Shapes:
    """By transformers' names."""
    shapes: dict[str, tuple[int, ...]] = {}
    for path in weight_files(folder):
        try:
            with safe_open(path, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118 - it is no mapping
                    if not name.startswith(family.ignored or "\0"):
                        shape = tuple(opened.get_slice(name).get_shape())
                        shapes[family.renamed(name)] = shape
        except (SafetensorError, OSError, ValueError) as error:
            raise CapabilityError(f"{path} cannot be read: {error}") from error
    return shapes


def weight_files(folder: Path) -> list[Path]:
    """The folder's safetensors files. Raises: `CapabilityError` where it has none."""
    if (folder / _SINGLE).is_file():
        return [folder / _SINGLE]
    if not (folder / _INDEX).is_file():
        raise CapabilityError(
            f"{folder} has no {_SINGLE}",
            hint="weft reads safetensors weights only; pickled ones can hold code",
        )
    index = ConfigFields.read(folder / _INDEX, _LARGEST_INDEX_BYTES)
    if "metadata" not in index:
        raise index.wrong("metadata", "no object")  # transformers cannot do without
    names = sorted({str(name) for _, name in index.within("weight_map").items()})
    for name in names:
        if Path(name).name != name:
            raise index.wrong("weight_map", f"{name!r} is no file of the folder")
    return [folder / name for name in names]
