"""EAGLE-3 drafters (arXiv 2503.01840) as SafeAILab, SpecForge and vLLM's speculators publish them.

All three have the same layer; speculators keeps its settings in `transformer_layer_config`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch

from weft.decoding.config_fields import CONFIG, ConfigFields
from weft.decoding.network.network import Network
from weft.decoding.speculative.drafters.trained.feature_layers import (
    Eagle3Layer,
    EagleShape,
    LayerVariant,
    MatrixHead,
)
from weft.decoding.speculative.drafters.trained.published.checkpoint import (
    PublishedCheckpoint,
    check_keys,
    own_head,
    rotary_frequencies,
)

LAYER: Final = {
    "norm_token.weight": "input_layernorm.weight",
    "norm_state.weight": "hidden_norm.weight",
    "norm_inner.weight": "post_attention_layernorm.weight",
    "query.weight": "self_attn.q_proj.weight",
    "key.weight": "self_attn.k_proj.weight",
    "value.weight": "self_attn.v_proj.weight",
    "output.weight": "self_attn.o_proj.weight",
    "gate.weight": "mlp.gate_proj.weight",
    "up.weight": "mlp.up_proj.weight",
    "down.weight": "mlp.down_proj.weight",
}
HEAD_NORMS: Final = {
    "norm_query.weight": "self_attn.q_norm.weight",
    "norm_key.weight": "self_attn.k_norm.weight",
}
AROUND: Final = {"fuse.weight": "fc.weight", "norm_out.weight": "norm.weight"}
MIDDLE: Final = "midlayer."
_FIRST: Final = "layers.0."
_EMBEDDINGS: Final = "embed_tokens.weight"
_SIZES: Final = frozenset(
    {
        "attention_bias",
        "head_dim",
        "hidden_act",
        "hidden_size",
        "intermediate_size",
        "layer_types",
        "logit_scale",
        "mlp_bias",
        "num_attention_heads",
        "num_hidden_layers",
        "num_key_value_heads",
        "pretraining_tp",
        "rms_norm_eps",
        "rope_parameters",
        "rope_scaling",
        "rope_theta",
        "sliding_window",
        "use_sliding_window",
        "vocab_size",
    }
)
_OWN: Final = frozenset(
    {
        "draft_vocab_size",
        "eagle_aux_hidden_state_layer_ids",
        "eagle_config",
        "fc_norm",
        "norm_before_fc",
        "norm_before_residual",
        "norm_output",
        "target_hidden_size",
    }
)
_INSIDE: Final = "transformer_layer_config"
_THETAS: Final = {"llama": 1e4, "qwen3": 1e6}


@dataclass(frozen=True, slots=True, eq=False)
class Eagle3Parts:
    """A published drafter: its layer, the target's layers that it reads, head and embeddings.

    `embed` is None where the target's are used.
    """

    layer: Eagle3Layer
    taps: tuple[int, ...]
    head: MatrixHead
    embed: Callable[[Sequence[int]], torch.Tensor] | None


def read_eagle3(folder: Path, network: Network) -> Eagle3Parts:
    """Read a folder as a drafter for `network`.

    Raises: `CapabilityError` naming file and key for what is missing, wrong or not run here.
    """
    config = ConfigFields.read(folder / CONFIG)
    inside = layer_settings(config, "eagle3")
    sizes = inside or config
    check_keys(config, _OWN if inside else _OWN | _SIZES)
    if inside:
        config.flag("norm_before_residual")  # vLLM and speculators differ where it is missing
        check_keys(inside, _SIZES)
    _check_variant(config, sizes)
    taps = _taps(config, network.layers)
    shape = _shape(config, sizes, len(taps), network.width)
    with torch.device("meta"):
        layer = Eagle3Layer(shape)
    vocabulary = sizes.whole("vocab_size", 2, 1 << 24)
    if vocabulary != network.vocabulary_size:
        raise sizes.wrong("vocab_size", f"the model has {network.vocabulary_size} tokens")
    drafted = config.whole("draft_vocab_size", 2, vocabulary, vocabulary)
    checkpoint = PublishedCheckpoint.read(folder)
    names = tensor_names(layer, _FIRST if inside or _is_numbered(checkpoint) else MIDDLE)
    like = network.embed([0])
    checkpoint.fill(layer, names, like)
    embed = None
    if _EMBEDDINGS in checkpoint:
        table = checkpoint.take(_EMBEDDINGS, (vocabulary, network.width))
        embed = _lookup(table.to(like.device, like.dtype))
    head = own_head(checkpoint, drafted, vocabulary, network)
    checkpoint.close()
    return Eagle3Parts(layer, taps, head, embed)


def layer_settings(config: ConfigFields, kind: str) -> ConfigFields | None:
    """The inner settings of speculators' format; None for the others. Raises: `CapabilityError`."""
    if "speculators_model_type" not in config:
        return None
    config.must_be("speculators_model_type", kind)
    if _INSIDE not in config:
        raise config.wrong(_INSIDE, "no object")
    return config.within(_INSIDE)


def tensor_names(layer: Eagle3Layer, prefix: str) -> dict[str, str]:
    """The published names of a layer's tensors, by weft's."""
    norms = HEAD_NORMS if layer.shape.variant.head_norms else {}
    inner = {ours: prefix + published for ours, published in (LAYER | norms).items()}
    return inner | AROUND


def _is_numbered(checkpoint: PublishedCheckpoint) -> bool:
    return any(name.startswith(_FIRST) for name in checkpoint.tensors)


def _check_variant(config: ConfigFields, sizes: ConfigFields) -> None:
    sizes.must_be("model_type", *_THETAS)
    sizes.must_be("num_hidden_layers", 1)
    sizes.must_be("hidden_act", "silu")
    sizes.must_be("layer_types", ["full_attention"])
    for key in ("pretraining_tp", "logit_scale"):
        sizes.must_be(key, 1)
    for key in ("attention_bias", "mlp_bias", "use_sliding_window"):
        sizes.must_be(key, False)
    for key in ("norm_before_fc", "fc_norm", "norm_output"):
        config.must_be(key, False)
    config.within("eagle_config").must_be("use_aux_hidden_state", True)


def _taps(config: ConfigFields, layers: int) -> tuple[int, ...]:
    """As vLLM reads them: the layers whose inputs are read; else EAGLE-3's three."""
    inner = config.within("eagle_config")
    check_keys(inner, ("use_aux_hidden_state", "eagle_aux_hidden_state_layer_ids"))
    key = "eagle_aux_hidden_state_layer_ids"
    return (
        layer_numbers(config if key in config else inner, key, layers)
        if key in config or key in inner
        else tuple(sorted({2, layers // 2, layers - 3} & set(range(layers))))
    )


def layer_numbers(config: ConfigFields, key: str, layers: int) -> tuple[int, ...]:
    """The list of layer numbers under `key`, ascending. Raises: `CapabilityError`."""
    found = sorted(config.ids(key, layers))
    if list(found) != dict(config.items()).get(key):
        raise config.wrong(key, "no ascending list of layers")
    return tuple(found)


def _shape(config: ConfigFields, sizes: ConfigFields, taps: int, width: int) -> EagleShape:
    kind = sizes.text("model_type", "llama")
    if sizes.whole("hidden_size", 1, 1 << 16) != width:
        raise sizes.wrong("hidden_size", f"the model's states have {width}")
    config.must_be("target_hidden_size", width)
    return layer_shape(
        sizes,
        taps,
        _THETAS[kind],
        head_norms=kind == "qwen3",
        norm_before_residual=config.flag("norm_before_residual", default=False),
    )


def layer_shape(
    sizes: ConfigFields,
    taps: int,
    theta: float,
    *,
    head_norms: bool,
    norm_before_residual: bool = False,
) -> EagleShape:
    """The sizes of a decoder layer in transformers' names. Raises: `CapabilityError`."""
    width = sizes.whole("hidden_size", 1, 1 << 16)
    heads = sizes.whole("num_attention_heads", 1, 1024)
    kv_heads = sizes.whole("num_key_value_heads", 1, heads, heads)
    if heads % kv_heads:
        raise sizes.wrong("num_key_value_heads", f"no divisor of {heads} heads")
    head_dim = sizes.whole("head_dim", 2, 4096, max(width // heads, 2))
    if head_dim % 2 or ("head_dim" not in sizes and width % heads):
        raise sizes.wrong("head_dim", f"no even size of {heads} heads")
    variant = LayerVariant(
        sizes.number("rms_norm_eps", 0.0, 1.0, 1e-6),
        rotary_frequencies(sizes, head_dim, theta),
        head_norms,
        norm_before_residual,
    )
    inner = sizes.whole("intermediate_size", 1, 1 << 20)
    return EagleShape(
        width=width,
        taps=taps,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        inner=inner,
        variant=variant,
    )


def _lookup(table: torch.Tensor) -> Callable[[Sequence[int]], torch.Tensor]:
    return lambda tokens: table[torch.tensor(tokens, dtype=torch.int64, device=table.device)]
