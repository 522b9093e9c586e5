"""Low-rank updates of a frozen model: a product of two thin matrices for each linear layer.

LoRA (arXiv 2106.09685) on all linear layers but the head.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.functional import linear

from weft.core.errors import InputError
from weft.decoding.adapters import adapter_file

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
    """All trained parameters of `model`, which they change by hooks; none below layer `lowest`.

    Layers below need no backward pass.
    """

    def __init__(self, model: PreTrainedModel, rank: int, alpha: float, lowest: int = 0) -> None:
        super().__init__()
        self.alpha = alpha
        head = model.get_output_embeddings()
        linears = [
            (name, of)
            for name, of in model.named_modules()
            if type(of) is nn.Linear and of is not head and _layer_of(name) >= lowest
        ]
        self._names = [name for name, _ in linears]
        self.maps = nn.ModuleList(LoraLayer(of, rank, alpha / rank) for _, of in linears)

    def load(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Go on from the tensors of an adapter file. Raises: `InputError` where they do not fit."""
        wanted = dict(self.tensors())
        if {name: one.shape for name, one in tensors.items()} != {
            name: one.shape for name, one in wanted.items()
        }:
            raise InputError(
                "the adapter has other layers, or another rank, than those that are trained",
                hint="give the rank and the lowest layer that it was trained with",
            )
        with torch.no_grad():
            for name, learnt in zip(self._names, self.maps, strict=True):
                learnt.down.copy_(tensors[name + adapter_file.DOWN])
                learnt.up.copy_(tensors[name + adapter_file.UP])

    def detach_hooks(self) -> None:
        """Restore the model."""
        for one in self.maps:
            one.hook.remove()

    def tensors(self, dtype: torch.dtype = torch.float16) -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors of an adapter file, by name."""
        for name, learnt in zip(self._names, self.maps, strict=True):
            yield name + adapter_file.DOWN, learnt.down.detach().to(dtype)
            yield name + adapter_file.UP, learnt.up.detach().to(dtype)


def _layer_of(name: str) -> int:
    """The first number in a module's name."""
    return next((int(part) for part in name.split(".") if part.isdecimal()), 0)
