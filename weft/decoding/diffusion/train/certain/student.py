"""What is distilled: a diffusion model with thin maps beside its weights, or all of its weights.

Knows no lesson: the logits of slots, and the folder it is written to.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import torch

from weft.core.errors import CapabilityError, InputError
from weft.decoding.diffusion.models import adapter_file
from weft.decoding.diffusion.models.families import OURS
from weft.decoding.diffusion.models.loading import load_trainable
from weft.decoding.diffusion.models.traits import FORMAT
from weft.decoding.diffusion.train.block import described
from weft.decoding.diffusion.train.block.low_rank import LowRanks
from weft.decoding.diffusion.train.order import Order
from weft.decoding.network.loading import quiet
from weft.decoding.network.options import NetworkOptions
from weft.decoding.train.precision import sparing

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_ALPHA: Final = 2.0
"""Of the rank: by how much more thin maps count than they are scaled for."""
_PRESET: Final = "dparallel"


class Student:
    """The order's model. `rank` 0: all weights are learnt.

    Raises: `InputError` for a model that cannot be read, or whose sight no training here has.
    """

    def __init__(self, order: Order, rank: int) -> None:
        assert order.model is not None
        options = NetworkOptions(dtype="float32", threads=order.threads, device=order.device)
        try:
            self._loaded = load_trainable(order.model, options, find=order.find)
        except CapabilityError as error:
            message = f"{order.model} is no diffusion model to distil: {error.message}"
            raise InputError(message, hint=error.hint) from error
        self.traits = self._loaded.traits
        self._model: PreTrainedModel = self._loaded.model
        kind = self._model.config.model_type
        if self.traits.attention == "causal_encoder" or kind not in OURS:
            raise InputError(
                f"{order.model} is not distilled here: a {kind} model whose attention is"
                f" {self.traits.attention}",
                hint=f"take a {', '.join(OURS)} whose slots see all, or all up to their block",
            )
        self._maps: LowRanks | None = None
        if rank:
            self._model.requires_grad_(requires_grad=False)
            mask = self.mask
            self._maps = LowRanks(self._model, rank, _ALPHA * rank, mask, fills=True)
        self.module: torch.nn.Module = self._maps or self._model

    @property
    def mask(self) -> int:
        """What an undecided slot holds."""
        assert self.traits.mask_id is not None
        return self.traits.mask_id

    @property
    def device(self) -> torch.device:
        """Where it learns."""
        device: torch.device = self._model.device
        return device

    def logits(self, ids: torch.Tensor, wanted: torch.Tensor, sees: torch.Tensor) -> torch.Tensor:
        """[wanted slots, vocabulary], aligned, with gradients.

        ids, wanted  [texts, slots]
        sees         [slots, slots] bool: which others a slot sees
        """
        # a shifted model predicts a slot where the one before it is read
        rows = wanted.roll(-1, dims=1) if self.traits.shifted else wanted
        with sparing(self.device):
            output = self._model.base_model(
                input_ids=ids,
                attention_mask=sees.expand(len(ids), 1, -1, -1),
                use_cache=False,
            )
            found: torch.Tensor = self._model.get_output_embeddings()(
                output.last_hidden_state[rows]
            )
        return found.float()[:, : self.traits.vocabulary]

    def save(self, folder: Path) -> None:
        """Write a whole model in half precision, in weft's own format. Raises: `OSError`."""
        if self._maps is not None:
            beside = folder / f".{described.ADAPTER}"
            adapter_file.write(beside, dict(self._maps.tensors()), self._maps.alpha)
            try:
                self._maps.detach_hooks()
                adapter_file.merge(self._model, beside)
            finally:
                beside.unlink(missing_ok=True)
        with quiet():
            self._model.cpu().half().save_pretrained(folder)  # nothing is learnt after it
        described.whole(folder, self._loaded.folder, self._told())

    def _told(self) -> dict[str, object]:
        traits = self.traits
        return {
            "format": FORMAT,
            "attention": traits.attention,
            **({"block": traits.block} if traits.block else {}),
            "shifted": traits.shifted,
            "mask_id": traits.mask_id,
            "end_ids": sorted(traits.end_ids),
            "banned": sorted(traits.banned),
            "preset": _PRESET,
        }
