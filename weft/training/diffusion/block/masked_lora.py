"""Low-rank updates of a causal model that learns to fill masks, with an embedding for the mask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from weft.decoding.adapters import adapter_file
from weft.training.lora import LoraModel

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class MaskedLoraModel(LoraModel):
    """`LoraModel`; the mask, `mask_id`, has a new embedding, at first the mean of all, or its own
    where the model already `fills` masks.
    """

    def __init__(
        self, model: PreTrainedModel, rank: int, alpha: float, mask_id: int, *, fills: bool = False
    ) -> None:
        super().__init__(model, rank, alpha)
        self.mask_id = mask_id
        embedding = model.get_input_embeddings()
        rows = embedding.weight.detach()[mask_id : mask_id + 1] if fills else embedding.weight
        self.mask = nn.Parameter(rows.detach().float().mean(dim=0))
        self._hook = embedding.register_forward_hook(self._read_mask)

    def detach_hooks(self) -> None:
        """Restore the model."""
        self._hook.remove()
        super().detach_hooks()

    def tensors(self, dtype: torch.dtype = torch.float16) -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors of an adapter file, by name."""
        yield from super().tensors(dtype)
        yield adapter_file.ROWS, self.mask.detach()[None].float()
        yield adapter_file.ROW_IDS, torch.tensor([self.mask_id])

    def _read_mask(self, _of: nn.Module, args: tuple[Any, ...], made: torch.Tensor) -> torch.Tensor:
        return torch.where((args[0] == self.mask_id)[..., None], self.mask.to(made.dtype), made)
