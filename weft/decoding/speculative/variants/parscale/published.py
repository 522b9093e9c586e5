"""Streams as the published checkpoints hold them.

The names of prefixes are those of public ports; those of the mixing, and the order of its inputs,
are recalled, and were not tried on a published file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import torch

from weft.core.errors import CapabilityError
from weft.decoding import tensor_file
from weft.decoding.speculative.variants.parscale.streams import Streams

_PREFIX: Final = "model.layers.{layer}.self_attn.prefix_{what}"
_MIXING: Final = "model.aggregate_layer.{number}.{what}"


def load_streams(path: Path, layers: int) -> Streams:
    """Those in one safetensors file of a model with so many layers.

    Raises: `CapabilityError` for a file without them, or with others.
    """
    try:
        tensors, _ = tensor_file.read(path)
    except tensor_file.TensorFileBroken as error:
        raise CapabilityError(str(error), hint="give the file model.safetensors") from error
    try:
        return Streams(
            _layered(tensors, layers, "k"),
            _layered(tensors, layers, "v"),
            tensors[_MIXING.format(number=0, what="weight")].float(),
            tensors[_MIXING.format(number=0, what="bias")].float(),
            tensors[_MIXING.format(number=2, what="weight")].float(),
            tensors[_MIXING.format(number=2, what="bias")].float(),
        )
    except KeyError as missing:
        why = f"{path} has no tensor {missing}: it is no ParScale model of {layers} layers"
        raise CapabilityError(why) from missing
    except (ValueError, RuntimeError) as error:
        raise CapabilityError(f"{path} holds no streams: {error}") from error


def _layered(tensors: Mapping[str, torch.Tensor], layers: int, what: str) -> torch.Tensor:
    """[streams, layers, kv_heads, prefix, head_dim]"""
    found = [tensors[_PREFIX.format(layer=layer, what=what)] for layer in range(layers)]
    return torch.stack([each.float() for each in found], dim=1)
