"""Trained models: a frozen one with low-rank updates, or one with all its weights."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import torch

from weft.decoding.adapters import adapter_file
from weft.decoding.network.layers import no_progress_bars
from weft.decoding.speculative.trained_drafter import Fingerprint
from weft.training.devices import computes_bfloat16, mixed_precision
from weft.training.diffusion.block import model_config
from weft.training.diffusion.block.masked_lora import MaskedLoraModel
from weft.training.teacher import Teacher

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_ALPHA: Final = 2.0
"""Alpha of LoRA, as a multiple of the rank."""


class BlockLearner(Protocol):
    """A model in training."""

    module: torch.nn.Module

    def logits(
        self, ids: torch.Tensor, slots: torch.Tensor, sees: torch.Tensor, predictors: torch.Tensor
    ) -> torch.Tensor:
        """Logits [predictors, vocabulary] of the rows `predictors`, numbered over all texts.

        ids, slots  [texts, rows]: token ids, and their positions
        sees        [texts, rows, rows] bool
        """

    def save(self, folder: Path, details: Mapping[str, object]) -> None:
        """Write the model to `folder`, with `details` in its config. Raises: `OSError`."""


class LoraLearner:
    """A frozen model with low-rank updates of `rank`, in bfloat16 where the device has it."""

    def __init__(self, path: Path, device: str, rank: int, mask_id: int) -> None:
        fast = computes_bfloat16(torch.device(device))
        self._teacher = Teacher.load(path, device, torch.bfloat16 if fast else torch.float32)
        self._base = path.name
        self._target = Fingerprint.of(self._teacher)  # before the mask's embedding is replaced
        self.module = MaskedLoraModel(self._teacher.model, rank, _ALPHA * rank, mask_id)

    def logits(
        self, ids: torch.Tensor, slots: torch.Tensor, sees: torch.Tensor, predictors: torch.Tensor
    ) -> torch.Tensor:
        return _logits(self._teacher, ids, slots, sees, predictors, nullcontext())

    def save(self, folder: Path, details: Mapping[str, object]) -> None:
        tensors = dict(self.module.tensors())
        adapter_file.write(folder / model_config.ADAPTER, tensors, self.module.alpha)
        kind = self._teacher.model.config.model_type
        details = {**details, "base": self._base}
        model_config.write_adapter_config(folder, kind, details, self._target)


class FullLearner:
    """A model of which all weights are trained."""

    def __init__(self, path: Path, device: str) -> None:
        self._path = path
        self._teacher = Teacher.load(path, device)
        self.module: PreTrainedModel = self._teacher.model.requires_grad_(requires_grad=True)

    def logits(
        self, ids: torch.Tensor, slots: torch.Tensor, sees: torch.Tensor, predictors: torch.Tensor
    ) -> torch.Tensor:
        precision = mixed_precision(self._teacher.device)
        return _logits(self._teacher, ids, slots, sees, predictors, precision)

    def save(self, folder: Path, details: Mapping[str, object]) -> None:
        with no_progress_bars():
            self.module.cpu().save_pretrained(folder)  # the last use of the model
        model_config.write_model_config(folder, self._path, details)


def _logits(
    teacher: Teacher,
    ids: torch.Tensor,
    slots: torch.Tensor,
    sees: torch.Tensor,
    predictors: torch.Tensor,
    precision: AbstractContextManager[object],
) -> torch.Tensor:
    device = teacher.device
    with precision:
        output = teacher.model.base_model(
            input_ids=ids.to(device),
            position_ids=slots.to(device),
            attention_mask=sees[:, None].to(device),
            use_cache=False,
        )
        hidden = output.last_hidden_state.flatten(0, 1)[predictors.to(device)]
        return teacher.head(hidden).float()
