"""Low-rank updates of a frozen model: a product of two thin matrices for each linear layer.

LoRA (arXiv 2106.09685) on all linear layers but the head, and an embedding for the mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.functional import linear

from weft.decoding.diffusion.models import adapter_file

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class LoraLayer(nn.Module):  # type: ignore[misc]
    """Adds a low-rank update to the output of a linear layer; zero at first."""

    def __init__(self, of: nn.Linear, rank: int, scale: float) -> None:
        super().__init__()
        device = of.weight.device
        self.down = nn.Parameter(torch.randn(rank, of.in_features) / of.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(of.out_features, rank))
        self.to(device)
        self._scale = scale
        self.hook = of.register_forward_hook(self._add)

    def _add(self, _of: nn.Module, args: tuple[Any, ...], made: torch.Tensor) -> torch.Tensor:
        thin = linear(args[0], self.down.to(made.dtype))
        return made + linear(thin, (self._scale * self.up).to(made.dtype))


class LoraModel(nn.Module):  # type: ignore[misc]
    """All trained parameters of `model`, which they change by hooks. The mask, `mask_id`, has a new
    embedding, at first the mean of all, or its own where the model already `fills` masks.
    """

    def __init__(
        self, model: PreTrainedModel, rank: int, alpha: float, mask_id: int, *, fills: bool = False
    ) -> None:
        super().__init__()
        self.alpha = alpha
        self.mask_id = mask_id
        linears = [(name, of) for name, of in model.named_modules() if type(of) is nn.Linear]
        head = model.get_output_embeddings()
        self._names = [name for name, of in linears if of is not head]
        self.maps = nn.ModuleList(
            LoraLayer(of, rank, alpha / rank) for _, of in linears if of is not head
        )
        embedding = model.get_input_embeddings()
        rows = embedding.weight.detach()[mask_id : mask_id + 1] if fills else embedding.weight
        self.mask = nn.Parameter(rows.detach().float().mean(dim=0))
        self._hook = embedding.register_forward_hook(self._read_mask)

    def detach_hooks(self) -> None:
        """Restore the model."""
        for hook in (self._hook, *(one.hook for one in self.maps)):
            hook.remove()

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors of an adapter file, by name."""
        for name, learnt in zip(self._names, self.maps, strict=True):
            yield name + adapter_file.DOWN, learnt.down.detach().half()
            yield name + adapter_file.UP, learnt.up.detach().half()
        yield adapter_file.ROWS, self.mask.detach()[None].float()
        yield adapter_file.ROW_IDS, torch.tensor([self.mask_id])

    def _read_mask(self, _of: nn.Module, args: tuple[Any, ...], made: torch.Tensor) -> torch.Tensor:
        return torch.where((args[0] == self.mask_id)[..., None], self.mask.to(made.dtype), made)
