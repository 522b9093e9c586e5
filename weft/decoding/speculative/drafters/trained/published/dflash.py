"""DFlash drafters (arXiv 2602.06036) as z-lab, SpecForge and vLLM's speculators publish them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

import torch

from weft.decoding.config_fields import CONFIG, ConfigFields
from weft.decoding.network.network import Network
from weft.decoding.speculative.drafters.trained.feature_layers import (
    DFlash,
    DFlashShape,
    DraftHead,
    TargetHead,
)
from weft.decoding.speculative.drafters.trained.published.checkpoint import (
    PublishedCheckpoint,
    check_keys,
    own_head,
)
from weft.decoding.speculative.drafters.trained.published.eagle3 import (
    HEAD_NORMS,
    LAYER,
    layer_numbers,
    layer_settings,
    layer_shape,
)
from weft.decoding.speculative.speculation import MOST_NODES

MASK_FILE: Final = "mask_embedding.pt"
AROUND: Final = {
    "fuse.weight": "fc.weight",
    "norm_context.weight": "hidden_norm.weight",
    "norm_out.weight": "norm.weight",
}
_SIZES: Final = frozenset(
    {
        "attention_bias",
        "head_dim",
        "hidden_act",
        "hidden_size",
        "intermediate_size",
        "layer_types",
        "mlp_bias",
        "num_attention_heads",
        "num_hidden_layers",
        "num_key_value_heads",
        "rms_norm_eps",
        "rope_parameters",
        "rope_scaling",
        "rope_theta",
        "sliding_window",
        "use_sliding_window",
        "vocab_size",
    }
)
_OUTSIDE: Final = frozenset(
    {
        "block_size",
        "dflash_config",
        "draft_vocab_size",
        "has_own_lm_head",
        "is_causal",
        "is_neox_style",
        "logit_scale",
        "mask_token_id",
        "num_target_layers",
        "target_hidden_size",
        "target_layer_ids",
    }
)
_SPECULATORS: Final = frozenset(
    {
        "aux_hidden_state_layer_ids",
        "block_size",
        "draft_vocab_size",
        "lambda_base_decay_ratio",
        "lambda_base_start",
        "emb_dim",
        "gru_hidden_dim",
        "mask_token_id",
        "projector_type",
        "pure_draft_prefix_len",
        "shift_label",
        "sliding_window_non_causal",
        "target_hidden_size",
    }
)
"""Those of the Domino projector say nothing while `projector_type` is dflash."""
_NESTED: Final = frozenset(
    {
        "block_size",
        "causal",
        "final_logit_softcapping",
        "input_embedding_scale",
        "mask_token_id",
        "output_multiplier",
        "sample_from_anchor",
        "target_layer_ids",
        "use_aux_hidden_state",
        "use_swa",
    }
)
_THETA: Final = 1e6
_MOST_LAYERS: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class DFlashParts:
    """A published drafter: its network, the target's layers that it reads, and its head."""

    net: DFlash
    taps: tuple[int, ...]
    head: DraftHead


def read_dflash(folder: Path, network: Network) -> DFlashParts:
    """Read a folder as a drafter for `network`.

    Raises: `CapabilityError` naming file and key for what is missing, wrong or not run here.
    """
    config = ConfigFields.read(folder / CONFIG)
    inside = layer_settings(config, "dflash")
    sizes = inside or config
    if inside:
        check_keys(config, _SPECULATORS)
        check_keys(inside, _SIZES)
        config.must_be("projector_type", "dflash")
        config.must_be("shift_label", False)
        taps = layer_numbers(config, "aux_hidden_state_layer_ids", network.layers)
    else:
        check_keys(config, _OUTSIDE | _SIZES)
        taps = _taps(config, network.layers)
    _check_variant(config, sizes)
    config.must_be("target_hidden_size", network.width)
    shape = _shape(config, sizes, len(taps), network.width)
    with torch.device("meta"):
        net = DFlash(shape)
    checkpoint = PublishedCheckpoint.read(folder)
    net.mask = torch.nn.Parameter(_mask(config, folder, network), requires_grad=False)
    checkpoint.fill(net, tensor_names(net), network.embed([0]))
    head: DraftHead = TargetHead(network)
    if "lm_head.weight" in checkpoint:
        vocabulary = sizes.whole("vocab_size", 2, 1 << 24)
        drafted = config.whole("draft_vocab_size", 2, vocabulary, vocabulary)
        head = own_head(checkpoint, drafted, vocabulary, network)
    _skip_embeddings(checkpoint, network)
    checkpoint.close()
    return DFlashParts(net, taps, head)


def tensor_names(net: DFlash) -> dict[str, str]:
    """The published names of the network's tensors, by weft's; the mask is none of them."""
    inner = {"norm_attention.weight": "input_layernorm.weight"} | {
        ours: published
        for ours, published in (LAYER | HEAD_NORMS).items()
        if ours not in {"norm_token.weight", "norm_state.weight"}
    }
    layers = {
        f"layers.{layer}.{ours}": f"layers.{layer}.{published}"
        for layer in range(len(net.layers))
        for ours, published in inner.items()
    }
    return AROUND | layers


def _check_variant(config: ConfigFields, sizes: ConfigFields) -> None:
    sizes.must_be("model_type", "qwen3")
    sizes.must_be("hidden_act", "silu")
    for key in ("attention_bias", "mlp_bias", "use_sliding_window"):
        sizes.must_be(key, False)
    layers = sizes.whole("num_hidden_layers", 1, _MOST_LAYERS)
    sizes.must_be("layer_types", ["full_attention"] * layers)
    config.must_be("is_causal", False)
    config.must_be("is_neox_style", True)
    config.must_be("logit_scale", 1)
    inner = config.within("dflash_config")
    check_keys(inner, _NESTED)
    for key in ("causal", "use_swa", "sample_from_anchor"):
        inner.must_be(key, False)
    for key in ("input_embedding_scale", "output_multiplier"):
        inner.must_be(key, 1)
    inner.must_be("final_logit_softcapping", 0)
    inner.must_be("use_aux_hidden_state", True)


def _taps(config: ConfigFields, layers: int) -> tuple[int, ...]:
    """The outputs of layers are published, and inputs of the next ones are read."""
    config.must_be("num_target_layers", layers)
    key = "target_layer_ids"
    inner = config.within("dflash_config")
    # the output of the last layer is read with the model's norm by one loader, without by another
    numbers = layer_numbers(inner if key in inner else config, key, layers - 1)
    return tuple(number + 1 for number in numbers)


def _shape(config: ConfigFields, sizes: ConfigFields, taps: int, width: int) -> DFlashShape:
    if sizes.whole("hidden_size", 1, 1 << 16) != width:
        raise sizes.wrong("hidden_size", f"the model's states have {width}")
    inner = config.within("dflash_config")
    block = inner if "block_size" in inner else config
    layer = layer_shape(sizes, taps, _THETA, head_norms=True)
    return DFlashShape(
        **{each.name: getattr(layer, each.name) for each in fields(layer)},
        block=block.whole("block_size", 2, MOST_NODES, 16),
        layers=sizes.whole("num_hidden_layers", 1, _MOST_LAYERS),
    )


def _mask(config: ConfigFields, folder: Path, network: Network) -> torch.Tensor:
    """[width]: what open slots read: the embedding of a token, or one that came beside."""
    inner = config.within("dflash_config")
    where = inner if "mask_token_id" in inner else config
    token = where.whole("mask_token_id", 0, network.vocabulary_size - 1)
    embedded = network.embed([token])[0]
    if not (folder / MASK_FILE).is_file():
        return embedded
    beside = PublishedCheckpoint.read(folder, (MASK_FILE,))
    if "mask_token_id" in beside and int(beside.take_ids("mask_token_id", ())) != token:
        raise beside.wrong("mask_token_id", f"is not {token}, as {CONFIG} has it")
    found = beside.take("embedding", (network.width,))
    beside.close()
    return found.to(embedded)


def _skip_embeddings(checkpoint: PublishedCheckpoint, network: Network) -> None:
    """Its copy of the target's embeddings, which must be one: blocks are read with the target's."""
    name = "embed_tokens.weight"
    if name not in checkpoint:
        return
    table = checkpoint.take(name, (network.vocabulary_size, network.width))
    first = range(min(64, network.vocabulary_size))
    theirs = network.embed(list(first)).float().cpu()
    if not torch.allclose(table[: len(first)], theirs, atol=1e-2, rtol=1e-2):
        raise checkpoint.wrong(name, "is not the model's: drafters with their own are not run here")
