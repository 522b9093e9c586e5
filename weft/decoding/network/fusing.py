"""How a model's weights are kept: which layers are fused, and in how many bits.

Decides by the options, by what the machine has kernels for, and by the weights themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from weft.core.errors import CapabilityError
from weft.decoding.network.fused_layer import FusedLayer, LinearMaker, can_fuse
from weft.decoding.network.layers import find_layers
from weft.decoding.network.options import NetworkOptions, Quantization
from weft.decoding.network.packed_linear import PackedLinear, can_pack
from weft.decoding.network.quantized_linear import GROUP, Int4Linear, Int8Linear, is_quantized

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_MAKERS: dict[str, LinearMaker] = {"none": PackedLinear, "int4": Int4Linear, "int8": Int8Linear}
_OUTPUTS = 16
"""The kernel of 4 bits takes outputs in multiples of so many."""


def fuse(model: PreTrainedModel, options: NetworkOptions) -> None:
    """Replace the layers of a model on the CPU, where they are of the Llama family.

    Raises: `CapabilityError` for a quantization that was asked for and cannot be had.
    """
    config = model.config.get_text_config()
    layers = find_layers(model, config.num_hidden_layers)
    if not has_kernels(model.device.type) or not can_fuse(model, layers):
        _check(options.quantization, "a model of the Llama family on the CPU")
        return
    assert layers is not None
    bits = _bits(layers, options.quantization)
    kv_heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    make_prompt = Int8Linear if bits == "int4" and _has_vnni() else None
    for number, layer in enumerate(layers):
        layers[number] = FusedLayer(layer, number, kv_heads, _MAKERS[bits], bits, make_prompt)
    head = model.get_output_embeddings()
    if bits != "none" and type(head) is nn.Linear and not _lacking("int8", (head,)):
        model.set_output_embeddings(Int8Linear(head.weight, head.bias, torch.float32))


def has_kernels(device: str) -> bool:
    """Whether layers of the Llama family are fused there."""
    return device == "cpu" and can_pack()


def _bits(layers: nn.ModuleList, wanted: Quantization) -> Quantization:
    linears = [part for layer in layers for part in layer.modules() if type(part) is nn.Linear]
    if wanted != "auto":
        _check(wanted, _lacking(wanted, linears))
        return wanted
    fits = not _lacking("int4", linears) and all(is_quantized(one.weight) for one in linears)
    return "int4" if fits else "none"


def _check(wanted: Quantization, lacking: str) -> None:
    if wanted not in {"none", "auto"} and lacking:
        raise CapabilityError(
            f"{wanted} quantization needs {lacking}", hint="use quantization: none, or auto"
        )


def _lacking(wanted: Quantization, linears: Sequence[nn.Linear]) -> str:
    """What a quantization needs and is not there; empty: nothing."""
    if wanted == "none":
        return ""
    if any(linear.weight.dtype != torch.bfloat16 for linear in linears):
        return "dtype: bfloat16"
    if wanted == "int8":
        return "" if _has_vnni() else "a CPU with AVX-512 VNNI"
    if not hasattr(torch.ops.aten, "_weight_int4pack_mm_for_cpu"):
        return "a build of torch with `_weight_int4pack_mm_for_cpu`"
    shapes = [linear.weight.shape for linear in linears]
    if any(outputs % _OUTPUTS or inputs % GROUP for outputs, inputs in shapes):
        return f"layers whose inputs are multiples of {GROUP}, and outputs of {_OUTPUTS}"
    return ""


def _has_vnni() -> bool:
    """Whether sums of products of 8 bits are exact and fast."""
    can = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(can.get("avx512_vnni") and hasattr(torch.ops.onednn, "qlinear_pointwise"))
