"""A published config as the transformers config that its layers have. Knows no weights.

Only what is named here is taken over, and each value within bounds: a config is foreign input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from transformers import LlamaConfig, Qwen2Config, Qwen3Config

from weft.core.errors import CapabilityError
from weft.decoding.diffusion.models.family import Body, Family
from weft.decoding.diffusion.models.fields import Fields

if TYPE_CHECKING:
    from transformers import PretrainedConfig

_CONFIGS: Final = {"llama": LlamaConfig, "qwen2": Qwen2Config, "qwen3": Qwen3Config}
_SIZES: Final = {
    "vocab_size": (2, 1 << 20),
    "hidden_size": (1, 1 << 16),
    "intermediate_size": (1, 1 << 20),
    "num_hidden_layers": (1, 512),
    "num_attention_heads": (1, 1024),
    "max_position_embeddings": (1, 1 << 24),
}
_BIASES: Final[Mapping[Body, tuple[str, ...]]] = {
    "llama": ("attention_bias", "mlp_bias"),
    "qwen2": (),
    "qwen3": ("attention_bias",),
}
_THETA: Final[Mapping[Body, float]] = {"llama": 1e4, "qwen2": 1e6, "qwen3": 1e6}
_TURNS: Final = ("default", "linear", "llama3", "yarn")


def config_of(config: Fields, family: Family, body: Body) -> PretrainedConfig:
    """What transformers makes the model's layers of.

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
    values["rms_norm_eps"] = config.number("rms_norm_eps", 0.0, 1.0, 1e-5)
    tied = family.key(config, "tie_word_embeddings")
    values["tie_word_embeddings"] = config.flag(tied, default=False)
    for name in _BIASES[body]:
        values[name] = config.flag(name, default=False)
    values["rope_parameters"] = _turns(config, body)
    return _made(config, body, values)


def _turns(config: Fields, body: Body) -> dict[str, object]:
    """The rotation of positions: as older configs say it, or newer ones."""
    newer = config.within("rope_parameters")
    scaling = newer if "rope_parameters" in config else config.within("rope_scaling")
    scaling.must_be("rope_type", *_TURNS)
    scaling.must_be("type", *_TURNS)
    kind = scaling.text("rope_type", scaling.text("type", "default"))
    theta = newer if "rope_theta" in newer else config
    turns: dict[str, object] = {
        "rope_type": kind,
        "rope_theta": theta.number("rope_theta", 1.0, 1e12, _THETA[body]),
    }
    for key in ("factor", "low_freq_factor", "high_freq_factor", "beta_fast", "beta_slow"):
        if key in scaling:
            turns[key] = scaling.number(key, 1e-6, 1e6)
    if "original_max_position_embeddings" in scaling:
        key = "original_max_position_embeddings"
        turns[key] = scaling.whole(key, 1, 1 << 24)
    return turns


def _made(config: Fields, body: Body, values: Mapping[str, object]) -> PretrainedConfig:
    try:
        return _CONFIGS[body](**values, pad_token_id=None, bos_token_id=None, eos_token_id=None)
    except (ValueError, TypeError, KeyError) as error:
        raise CapabilityError(
            f"{config.path}: no {body} model can be made of it: {error}"
        ) from error
