"""What enters the layers of a model: looked at, and where that is wanted, written over.

Works on transformers' own decoder classes, by hooks that go by the step they are called with.
"""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import torch

from weft.decoding.network.fused_decoder import enter

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from weft.decoding.network.packing import Step

_WATCHED: WeakSet[torch.nn.Module] = WeakSet()


def find_layers(model: PreTrainedModel, count: int) -> torch.nn.ModuleList | None:
    """The decoder layers, in order; None where the model has them elsewhere."""
    for module in model.base_model.children():
        if isinstance(module, torch.nn.ModuleList) and len(module) == count:
            return module
    return None


def watch(model: PreTrainedModel, layers: torch.nn.ModuleList) -> None:
    """Let every layer, and the end of the last, tell the step that is being read."""
    for number, layer in enumerate(layers):
        if layer not in _WATCHED:  # else it belongs to another model too, at the same place
            _WATCHED.add(layer)
            layer.register_forward_pre_hook(partial(_enter, number), with_kwargs=True)
            layer.register_forward_hook(partial(_pass, number), with_kwargs=True)
    model.base_model.register_forward_hook(partial(_leave, len(layers)), with_kwargs=True)


def some_layers(
    model: PreTrainedModel, layers: torch.nn.ModuleList, first: int, last: int
) -> PreTrainedModel:
    """A model of the same weights that has the layers `first` to `last` - 1 only."""
    config = deepcopy(model.config)
    config.get_text_config().num_hidden_layers = last - first
    with torch.device("meta"):
        short: PreTrainedModel = type(model)(config).eval()
    for name, module in model.named_children():
        if module is not model.base_model:
            setattr(short, name, module)
    for name, module in model.base_model.named_children():
        kept = torch.nn.ModuleList(layers[first:last]) if module is layers else module
        setattr(short.base_model, name, kept)
    return short


def _enter(
    number: int, _layer: torch.nn.Module, args: tuple[torch.Tensor, ...], kwargs: dict[str, Any]
) -> tuple[tuple[torch.Tensor, ...], dict[str, Any]] | None:
    step: Step | None = kwargs.get("step")
    if step is None or not (number in step.taps or number in step.written):
        return None
    hidden = enter(step, number, args[0][0])
    return (hidden[None], *args[1:]), kwargs


def _pass(
    number: int, _layer: torch.nn.Module, _args: object, kwargs: dict[str, Any], output: Any
) -> None:
    step: Step | None = kwargs.get("step")
    if step is not None and -number - 1 in step.taps:
        step.hidden[-number - 1] = (output[0] if isinstance(output, tuple) else output)[0]


def _leave(
    number: int, _model: torch.nn.Module, _args: object, kwargs: dict[str, Any], output: Any
) -> None:
    step: Step | None = kwargs.get("step")
    if step is not None and number in step.taps:
        step.hidden[number] = output.last_hidden_state[0]
