"""Writing a trained drafter in the format in which vLLM loads it.

Only the published form (`form` 2) has one: weft's own layers compute something else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import torch

from weft.core.errors import CapabilityError, InputError
from weft.decoding import tensor_file
from weft.decoding.config_fields import CONFIG, ConfigFields, write_config
from weft.decoding.network.network import Network
from weft.decoding.speculative import trained_drafter
from weft.decoding.speculative.drafters.trained import dflash, eagle, medusa
from weft.decoding.speculative.drafters.trained.feature_layers import (
    DraftVocabularyHead,
    Eagle3Layer,
    EagleShape,
    read_form,
)
from weft.decoding.speculative.drafters.trained.published import dflash as published_dflash
from weft.decoding.speculative.drafters.trained.published import eagle3
from weft.decoding.speculative.drafters.trained.published.medusa import read_medusa
from weft.decoding.speculative.trained_drafter import TrainedDrafter

_KIND: Final = "weft_drafter"
_PUBLISHED: Final = 2


@dataclass(frozen=True, slots=True)
class ExportedDrafter:
    """A folder for vLLM: `decode` is its decoder for `weft serve --decode`."""

    kind: str
    folder: Path
    decode: str


@dataclass(frozen=True, slots=True)
class _Files:
    """config.json, model.safetensors, and files of tensors beside them."""

    config: Mapping[str, object]
    tensors: Mapping[str, torch.Tensor]
    beside: Mapping[str, object]


def export_drafter(folder: Path, network: Network, out: Path) -> ExportedDrafter:
    """Write the drafter in `folder`, trained for `network`, to the new folder `out`: one of weft's,
    or Medusa heads in the format of Medusa's own code.

    Raises: `InputError` where `out` exists or vLLM has no such drafter, `CapabilityError` for a
    broken folder and one of another model, `OSError`.
    """
    if out.exists():
        raise InputError(f"{out} exists already", hint="name another folder")
    config = ConfigFields.read(folder / CONFIG)
    if _KIND not in config:
        return _write("medusa", "medusa", _converted(folder, config, network), out)
    kind = config.text(_KIND)
    if kind not in _EXPORTS:
        raise InputError(
            f"vLLM cannot load a drafter of the kind {kind!r}",
            hint=f"it loads {', '.join(sorted(_EXPORTS))}",
        )
    trained = trained_drafter.load(folder, kind, network)
    if read_form(trained) != _PUBLISHED:
        raise InputError(
            f"{folder} has weft's own form, which vLLM cannot compute",
            hint=f"train one that it can: weft train-drafter {kind} --set form={_PUBLISHED} ...",
        )
    method, make = _EXPORTS[kind]
    return _write(kind, method, make(trained, network), out)


def _write(kind: str, method: str, files: _Files, out: Path) -> ExportedDrafter:
    out.mkdir(parents=True)
    for name, value in files.beside.items():
        torch.save(value, out / name)
    tensor_file.write(out / trained_drafter.WEIGHTS, files.tensors, {"format": "pt"})
    write_config(out, json.loads(json.dumps(files.config)))
    return ExportedDrafter(kind, out, f"{method}:{out}")


def _eagle(trained: TrainedDrafter, network: Network) -> _Files:
    model = eagle.loaded(trained, network, eagle.EagleOptions())
    layer = model.layer
    assert isinstance(layer, Eagle3Layer)
    names = eagle3.tensor_names(layer, eagle3.MIDDLE)
    if max(model.taps) >= network.layers:
        raise InputError("vLLM cannot give a drafter what leaves the last layer")
    head, sizes = _head(trained, network)
    config = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "num_hidden_layers": 1,
        "eagle_config": {
            "eagle_aux_hidden_state_layer_ids": list(model.taps),
            "use_aux_hidden_state": True,
        },
        **_layer_config(layer.shape, network),
        **sizes,
    }
    return _Files(config, _renamed(trained, names) | head, {})


def _dflash(trained: TrainedDrafter, network: Network) -> _Files:
    model = dflash.loaded(trained, network)
    shape = model.net.shape
    if min(model.taps) < 1 or max(model.taps) >= network.layers:
        raise InputError("vLLM gives a DFlash drafter what leaves layers before the last one")
    head, sizes = _head(trained, network)
    mask = network.vocabulary_size - 1  # stands for the mask's own embedding, beside
    config = {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "num_hidden_layers": shape.layers,
        "layer_types": ["full_attention"] * shape.layers,
        "num_target_layers": network.layers,
        "block_size": shape.block,
        "dflash_config": {
            "mask_token_id": mask,
            "target_layer_ids": [tap - 1 for tap in model.taps],
        },
        **_layer_config(shape, network),
        **sizes,
    }
    embedding = {"mask_token_id": mask, "embedding": trained.tensors["mask"].clone()}
    names = published_dflash.tensor_names(model.net)
    return _Files(config, _renamed(trained, names) | head, {published_dflash.MASK_FILE: embedding})


def _converted(folder: Path, config: ConfigFields, network: Network) -> _Files:
    """Published Medusa heads, for vLLM."""
    if "medusa_num_heads" not in config:
        raise InputError(
            f"{folder} is in a published format already", hint="weft serve takes it as it is"
        )
    heads = read_medusa(folder, network)
    tensors = {}
    for head, layers in enumerate(heads.blocks):
        tensors[f"lm_heads.{head}.weight"] = heads.tables[head]
        for layer, block in enumerate(layers):
            for part, value in block.state_dict().items():
                tensors[f"blocks.{head}.layers.{layer}.{part}"] = value
    described = {**_medusa_config(len(heads), network), "num_hidden_layers": len(heads.blocks[0])}
    return _Files(described, tensors, {})


def _medusa(trained: TrainedDrafter, network: Network) -> _Files:
    heads = trained.whole("heads", 1, medusa.MOST_HEADS)
    head, sizes = _head(trained, network)
    tensors = {"lm_head.weight": head["lm_head.weight"]}
    few = sizes["draft_vocab_size"]
    if few < network.vocabulary_size:
        tensors["token_map"] = trained.ids("tokens", network.vocabulary_size)
    for number in range(heads):
        for part in ("weight", "bias"):
            name = f"blocks.{number}.layers.0.{part}"
            tensors[name] = trained.tensors[f"into.{number}.{part}"]
    config = _medusa_config(heads, network) | {
        "truncated_vocab_size": few,
        "num_hidden_layers": 1,
        "original_lm_head": True,
    }
    return _Files(config, tensors, {})


def _medusa_config(heads: int, network: Network) -> dict[str, object]:
    return {
        "architectures": ["MedusaModel"],
        "model_type": "medusa",
        "hidden_size": network.width,
        "vocab_size": network.vocabulary_size,
        "num_heads": heads,
        "medusa_fc_bias": True,
    }


_EXPORTS: Final[Mapping[str, tuple[str, Callable[[TrainedDrafter, Network], _Files]]]] = (
    MappingProxyType(
        {"eagle": ("eagle3", _eagle), "dflash": ("dflash", _dflash), "medusa": ("medusa", _medusa)}
    )
)
"""By kind: vLLM's name of the method, and what makes its files."""


def _renamed(trained: TrainedDrafter, names: Mapping[str, str]) -> dict[str, torch.Tensor]:
    return {published: trained.tensors[ours] for ours, published in names.items()}


def _head(
    trained: TrainedDrafter, network: Network
) -> tuple[dict[str, torch.Tensor], dict[str, int]]:
    """The target's head for the drafter's tokens, in their order, and its sizes."""
    ids = trained.ids("tokens", network.vocabulary_size)
    matrix = DraftVocabularyHead(network, ids).matrix
    if matrix is None:
        raise CapabilityError("vLLM's drafters cannot have a head with a bias, as the model's has")
    drafted = torch.zeros(network.vocabulary_size, dtype=torch.bool)
    drafted[ids] = True
    tensors = {"lm_head.weight": matrix, "d2t": ids - torch.arange(len(ids)), "t2d": drafted}
    return tensors, {"vocab_size": network.vocabulary_size, "draft_vocab_size": len(ids)}


def _layer_config(shape: EagleShape, network: Network) -> dict[str, object]:
    return {
        "hidden_act": "silu",
        "hidden_size": shape.width,
        "intermediate_size": shape.inner,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "rms_norm_eps": shape.variant.eps,
        "rope_theta": shape.theta,
        "max_position_embeddings": network.context_tokens,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
    }
