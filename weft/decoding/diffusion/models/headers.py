"""What weights a folder has, from the headers of its files, and whether a model fits them.

Reads no tensor. Asked before any memory is taken for what a config claims.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import torch
from safetensors import SafetensorError, safe_open
from transformers import LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM

from weft.core.errors import CapabilityError
from weft.decoding.diffusion.models.family import Body, Family
from weft.decoding.diffusion.models.fields import Fields

if TYPE_CHECKING:
    from transformers import PretrainedConfig

CLASSES: Final = {
    "llama": LlamaForCausalLM,
    "qwen2": Qwen2ForCausalLM,
    "qwen3": Qwen3ForCausalLM,
}
_SINGLE: Final = "model.safetensors"
_INDEX: Final = "model.safetensors.index.json"
_LARGEST_INDEX_BYTES: Final = 1 << 25
_HEAD: Final = "lm_head.weight"

Shapes = Mapping[str, tuple[int, ...]]


def check_weights(folder: Path, family: Family, body: Body, config: PretrainedConfig) -> None:
    """Raise `CapabilityError` unless the folder's weights are those of such a model.

    The message names the file and the first weight that is missing, unknown or of another shape.
    """
    wanted = _wanted(body, config)
    found = _found(folder, family)
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


def _wanted(body: Body, config: PretrainedConfig) -> Shapes:
    with torch.device("meta"):
        model = CLASSES[body](config)
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def _found(folder: Path, family: Family) -> Shapes:
    """By transformers' names."""
    shapes: dict[str, tuple[int, ...]] = {}
    for path in _files(folder):
        try:
            with safe_open(path, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118 - it is no mapping
                    if not name.startswith(family.ignored or "\0"):
                        shape = tuple(opened.get_slice(name).get_shape())
                        shapes[family.renamed(name)] = shape
        except (SafetensorError, OSError, ValueError) as error:
            raise CapabilityError(f"{path} cannot be read: {error}") from error
    return shapes


def _files(folder: Path) -> list[Path]:
    if (folder / _SINGLE).is_file():
        return [folder / _SINGLE]
    if not (folder / _INDEX).is_file():
        raise CapabilityError(
            f"{folder} has no {_SINGLE}",
            hint="weft reads safetensors weights only; pickled ones can hold code",
        )
    index = Fields.read(folder / _INDEX, _LARGEST_INDEX_BYTES)
    if "metadata" not in index:
        raise index.wrong("metadata", "no object")  # transformers cannot do without
    names = sorted({str(name) for _, name in index.within("weight_map").items()})
    for name in names:
        if Path(name).name != name:
            raise index.wrong("weight_map", f"{name!r} is no file of the folder")
    return [folder / name for name in names]
