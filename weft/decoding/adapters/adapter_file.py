"""Adapter files: trained tensors that are merged into a base model when it is loaded.

Low-rank updates (LoRA, arXiv 2106.09685), whole parameters, and single rows of the embedding.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import torch

from weft.core.errors import CapabilityError
from weft.decoding import tensor_file

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from weft.decoding.network.llama_folder import LlamaModel

FORMAT: Final = "weft-lora"
DOWN: Final = ".lora_a"
UP: Final = ".lora_b"
ROWS: Final = "embedding_rows"
ROW_IDS: Final = "embedding_ids"
_LARGEST_ALPHA: Final = 1e6


def write(path: Path, tensors: Mapping[str, torch.Tensor], alpha: float) -> None:
    """Write an adapter. `tensors` by name:

    NAME.lora_a [rank, in] and NAME.lora_b [out, rank] add (alpha / rank) * b @ a to the weight of
    the linear layer NAME; `embedding_rows` [rows, width] replace those of `embedding_ids` [rows];
    every other name is a parameter, which is replaced whole.

    Raises: `OSError`.
    """
    tensor_file.write(path, tensors, {"format": FORMAT, "alpha": repr(float(alpha))})


def merge(model: PreTrainedModel | LlamaModel, path: Path) -> None:
    """Change the model's weights as the file at `path` says.

    Raises: `CapabilityError` naming the file and the tensor that does not fit; the model is then
    unusable.
    """
    try:
        tensors, notes = tensor_file.read(path)
    except tensor_file.TensorFileError as error:
        raise CapabilityError(str(error)) from error
    if notes.get("format") != FORMAT:
        raise CapabilityError(f"{path} is no adapter: its format is {notes.get('format')!r}")
    parameters = dict(model.named_parameters())
    with torch.inference_mode():
        for name, tensor in tensors.items():
            if not tensor.isfinite().all():
                raise _unfit(path, name, "has numbers in it that are not finite")
            if name.endswith(DOWN):
                _add(path, parameters, tensors, name.removesuffix(DOWN), _alpha(path, notes))
            elif name.endswith(UP):
                if name.removesuffix(UP) + DOWN not in tensors:
                    raise _unfit(path, name, f"has no {DOWN} beside it")
            elif name == ROWS:
                _replace_rows(path, model, tensors)
            elif name != ROW_IDS:
                _replace(path, parameters, name, tensor)


def _alpha(path: Path, notes: Mapping[str, str]) -> float:
    try:
        alpha = float(notes.get("alpha", ""))
    except ValueError:
        alpha = 0.0
    if not 0 < alpha <= _LARGEST_ALPHA:
        raise CapabilityError(f"{path} is no adapter: its alpha is {notes.get('alpha')!r}")
    return alpha


def _add(
    path: Path,
    parameters: Mapping[str, torch.Tensor],
    tensors: Mapping[str, torch.Tensor],
    name: str,
    alpha: float,
) -> None:
    down, up = tensors[name + DOWN], tensors.get(name + UP)
    weight = parameters.get(name + ".weight")
    if weight is None:
        raise _unfit(path, name + DOWN, "is for no layer of the base")
    if up is None:
        raise _unfit(path, name + DOWN, f"has no {UP} beside it")
    rank = down.shape[0] if down.ndim == 2 else 0
    if not rank or up.shape != (weight.shape[0], rank) or down.shape[1] != weight.shape[1]:
        raise _unfit(path, name + DOWN, f"does not fit a weight of {list(weight.shape)}")
    change = (up.float() @ down.float()) * (alpha / rank)
    weight.copy_((weight.float() + change.to(weight.device)).to(weight.dtype))


def _replace(
    path: Path, parameters: Mapping[str, torch.Tensor], name: str, tensor: torch.Tensor
) -> None:
    parameter = parameters.get(name)
    if parameter is None or parameter.shape != tensor.shape:
        raise _unfit(path, name, "is no parameter of the base, or of another shape")
    parameter.copy_(tensor.to(parameter))


def _replace_rows(
    path: Path, model: PreTrainedModel | LlamaModel, tensors: Mapping[str, torch.Tensor]
) -> None:
    rows, ids = tensors[ROWS], tensors.get(ROW_IDS)
    table = model.get_input_embeddings().weight
    if ids is None or ids.ndim != 1 or ids.is_floating_point():
        raise _unfit(path, ROW_IDS, "is no list of token ids")
    if rows.shape != (len(ids), table.shape[1]):
        raise _unfit(path, ROWS, f"is {list(rows.shape)}, not {[len(ids), table.shape[1]]}")
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < len(table):
        raise _unfit(path, ROW_IDS, f"has ids that are not from 0 to {len(table) - 1}")
    table[ids.long()] = rows.to(table)


def _unfit(path: Path, name: str, why: str) -> CapabilityError:
    return CapabilityError(
        f"{path}: {name} {why}", hint="the adapter was made for another base model"
    )
