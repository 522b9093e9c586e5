"""How a model's weights are kept: which layers are fused, and in how many bits.

Decides by the options, by what the machine has kernels for, and by the weights themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from weft.core.errors import CapabilityError
from weft.decoding.network.fused_layer import FusedLayer, LinearMaker, can_fuse
from weft.decoding.network.layers import find_layers
from weft.decoding.network.options import NetworkOptions
from weft.decoding.network.packed_linear import PackedLinear, can_pack
from weft.decoding.network.quantized_linear import GROUP, Int4Linear, Int8Linear, is_quantized

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_OUTPUTS = 16
"""The kernel of 4 bits takes outputs in multiples of so many."""


def fuse(model: PreTrainedModel, options: NetworkOptions) -> None:
    """Replace the layers of a model on the CPU, where they are of the Llama family.

    Raises: `CapabilityError` for a quantization that was asked for and cannot be had.
    """
    config = model.config.get_text_config()
    layers = find_layers(model, config.num_hidden_layers)
    fusible = model.device.type == "cpu" and can_pack() and can_fuse(model, layers)
    lacking = _lacking(model, layers) if fusible else "a model of the Llama family on the CPU"
    if options.quantization == "int4" and lacking:
        raise CapabilityError(
            f"int4 quantization needs {lacking}", hint="use quantization: none, or auto"
        )
    if not fusible or layers is None:
        return
    quantized = not lacking and options.quantization != "none"
    if options.quantization == "auto":
        quantized = quantized and all(map(is_quantized, _samples(layers)))
    make: LinearMaker = Int4Linear if quantized else PackedLinear
    kv_heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    for number, layer in enumerate(layers):
        layers[number] = FusedLayer(layer, number, kv_heads, make)
    head = model.get_output_embeddings()
    if quantized and type(head) is nn.Linear and _has_vnni():
        model.set_output_embeddings(Int8Linear(head.weight, head.bias))


def _lacking(model: PreTrainedModel, layers: nn.ModuleList | None) -> str:
    """What keeps 4 bits from being used; empty: nothing."""
    if not hasattr(torch.ops.aten, "_weight_int4pack_mm_for_cpu"):
        return "a build of torch with `_weight_int4pack_mm_for_cpu`"
    if model.dtype != torch.bfloat16:
        return "dtype: bfloat16"
    shapes = [linear.weight.shape for linear in _linears(layers or ())]
    if any(outputs % _OUTPUTS or inputs % GROUP for outputs, inputs in shapes):
        return f"layers whose inputs are multiples of {GROUP}, and outputs of {_OUTPUTS}"
    return ""


def _has_vnni() -> bool:
    """Whether sums of products of 8 bits are exact and fast."""
    can = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(can.get("avx512_vnni") and hasattr(torch.ops.onednn, "qlinear_pointwise"))


def _samples(layers: nn.ModuleList) -> list[torch.Tensor]:
    return [linear.weight for linear in _linears(layers)]


def _linears(layers: nn.ModuleList | tuple[()]) -> list[nn.Linear]:
    return [part for layer in layers for part in layer.modules() if type(part) is nn.Linear]
