"""A model's folder and its decoder layers: read, found, cut, and tapped by hooks.

Weights are read as they are, without code that comes with them; models whose rows cannot share a
flat batch are refused. Hooks go by the step that transformers' own classes are called with.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import torch

from weft.core.errors import CapabilityError
from weft.decoding.network import attention
from weft.decoding.network.fused_decoder import enter
from weft.decoding.network.options import NetworkOptions

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from weft.decoding.network.packing import PackedBatch


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
    step: PackedBatch | None = kwargs.get("step")
    if step is None or not (number in step.taps or number in step.written):
        return None
    hidden = enter(step, number, args[0][0])
    return (hidden[None], *args[1:]), kwargs


def _pass(
    number: int, _layer: torch.nn.Module, _args: object, kwargs: dict[str, Any], output: Any
) -> None:
    step: PackedBatch | None = kwargs.get("step")
    if step is not None and -number - 1 in step.taps:
        step.hidden[-number - 1] = (output[0] if isinstance(output, tuple) else output)[0]


def _leave(
    number: int, _model: torch.nn.Module, _args: object, kwargs: dict[str, Any], output: Any
) -> None:
    step: PackedBatch | None = kwargs.get("step")
    if step is not None and number in step.taps:
        step.hidden[number] = output.last_hidden_state[0]


# transformers swaps process-wide initialisers while it loads: two threads at once break each other,
# and every load after them
LOADING = threading.Lock()


@dataclass(frozen=True, slots=True)
class CheckpointMapping:
    """A folder that speaks of a model of transformers in words of its own.

    kind    transformers' class
    config  read in the folder's place
    keys    regular expressions of weight names, and what replaces them
    """

    kind: type[PreTrainedModel]
    config: PretrainedConfig
    keys: Mapping[str, str] = field(default_factory=dict)


def load_weights(
    path: Path,
    options: NetworkOptions,
    dialect: CheckpointMapping | None = None,
    attends: str = attention.NAME,
) -> PreTrainedModel:
    """Read a folder's safetensors weights onto the device. `attends` by transformers' name: that of
    a `Network` is for inference.

    Raises: `CapabilityError` for a model of another kind; what transformers raises when the files
    are broken.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    attention.register()
    if dialect is None:
        config = AutoConfig.from_pretrained(path, local_files_only=True)
        kind, keys = AutoModelForCausalLM, None
    else:
        config, kind, keys = dialect.config, dialect.kind, dict(dialect.keys) or None
    _check_kind(config.get_text_config())
    with LOADING, no_progress_bars():
        model: PreTrainedModel = kind.from_pretrained(
            path.absolute(),
            config=config,
            key_mapping=keys,
            dtype=dtype_of(options),
            attn_implementation=attends,
            use_safetensors=True,
            local_files_only=True,
        )
    with torch.no_grad():
        return model.to(options.device).eval()


def folder_of(model: PreTrainedModel) -> Path | None:
    """Where a model was read from; None for one that was made."""
    return Path(model.config.name_or_path) if model.config.name_or_path else None


def _check_kind(config: PretrainedConfig) -> None:
    """Refuse what rows of one flat batch cannot share: windows, states, length-dependent angles."""
    layers = set(getattr(config, "layer_types", None) or ()) - {"full_attention"}
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type")
    if layers or rope in {"dynamic", "longrope"}:
        raise CapabilityError(f"a local model cannot have {sorted(layers) or f'{rope} positions'}")


def dtype_of(options: NetworkOptions) -> torch.dtype:
    """What `auto` stands for on this machine."""
    if options.dtype != "auto":
        return torch.float32 if options.dtype == "float32" else torch.bfloat16
    if options.device != "cpu":
        return torch.bfloat16
    can = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    fast = can.get("avx512_bf16") or can.get("amx_bf16")
    return torch.bfloat16 if fast else torch.float32


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Keep transformers' progress bars off the terminal, which belongs to the program."""
    from transformers.utils import logging as transformers_logging

    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()
