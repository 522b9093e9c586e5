"""Linear layers on the CPU, and how a model's weights are kept: fused layers, few bits.

`fuse` decides by the options, by what the machine has kernels for, and by the weights themselves.
Kernels add each row's sums in one order: a row's product does not depend on the rows beside it, so
a draft that is read in one pass gets the logits, bit for bit, that its tokens get one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from weft.core.errors import CapabilityError
from weft.decoding.network.fused_decoder import FusedLayer, LinearMaker, can_fuse
from weft.decoding.network.layers import find_layers
from weft.decoding.network.options import NetworkOptions, Quantization

if TYPE_CHECKING:
    from transformers import PreTrainedModel


GROUP = 32
_LEVELS = 15
_ROUNDING = 2.0**-8
"""How far bfloat16 may have moved a number, relative to it; twice what one rounding does."""


class Int4Linear(nn.Module):  # type: ignore[misc]
    """Weights in 4 bits, by groups of 32 inputs a scale and a zero point.

    The kernel multiplies rows of bfloat16. weight: [out, in], bias: [out] or None.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        super().__init__()
        levels, scales_and_zeros = quantize(weight)
        self._weight = torch.ops.aten._convert_weight_to_int4pack_for_cpu(levels, 1)  # noqa: SLF001
        self._scales_and_zeros = scales_and_zeros
        self._bias = bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [rows, in] -> [rows, out]"""
        # not by `torch.ops`, whose calls take longer: there are 120 for one token
        multiply = torch._weight_int4pack_mm_for_cpu  # noqa: SLF001
        y = multiply(x, self._weight, GROUP, self._scales_and_zeros)
        return y if self._bias is None else y + self._bias


class Int4LinearOfFloat32(Int4Linear):
    """The same for a network in float32: rows are rounded to bfloat16 for the product alone."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [rows, in] -> [rows, out]"""
        multiply = torch._weight_int4pack_mm_for_cpu  # noqa: SLF001
        rows = x.to(torch.bfloat16)
        y = multiply(rows, self._weight, GROUP, self._scales_and_zeros).to(torch.float32)
        return y if self._bias is None else y + self._bias


class Int8Linear(nn.Module):  # type: ignore[misc]
    """Weights in 8 bits, a scale for each output; rows are quantised as they come, each by itself,
    to 255 levels from its lowest number to its highest.

    Sums are whole numbers. weight: [out, in], bias: [out] or None; `dtype` is of what it returns.
    """

    def __init__(
        self,
        weight: torch.Tensor,
        bias: torch.Tensor | None = None,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        super().__init__()
        self._dtype = dtype
        rows = weight.detach().to(torch.float32, copy=True)
        self._scales = torch.maximum(rows.amax(dim=1), -rows.amin(dim=1)).clamp_(min=1e-12) / 127
        levels = rows.div_(self._scales[:, None]).round_()
        self._sums = levels.sum(dim=1).mul_(self._scales)
        self._weight = torch.ops.onednn.qlinear_prepack(levels.to(torch.int8), [8, weight.shape[1]])
        self._zeros = torch.zeros(len(levels), dtype=torch.int64)
        self._bias = bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [rows, in] -> [rows, out]"""
        levels, low, step = _row_levels(x)
        multiply = torch.ops.onednn.qlinear_pointwise.default
        whole = multiply(
            levels, 1.0, 0, self._weight, self._scales, self._zeros, None, 1.0, 0,
            torch.float32, "none", [], "",
        )  # fmt: skip
        y = whole.mul_(step).addcmul_(low, self._sums).to(self._dtype)
        return y if self._bias is None else y + self._bias


def _row_levels(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Levels 0 to 255 of each row, the number that level 0 is, and how far levels are apart.

    0 is a level: most numbers of a row may be close to it, and their errors must not add up.
    Converts by way of signed numbers: for unsigned ones torch has no vector instructions.
    """
    x = x.to(torch.float32, copy=True)
    low = x.amin(dim=-1, keepdim=True)
    step = x.amax(dim=-1, keepdim=True).sub_(low).div_(254).clamp_(min=1e-12)
    lowest = low.div_(step).round_()
    signed = x.div_(step).sub_(lowest + 128).round_().to(torch.int8)
    return signed.view(torch.uint8).bitwise_xor_(128), lowest.mul_(step), step


def quantize(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Levels 0 to 15, int32 [out, in], and bfloat16 [groups, out, 2]: a scale, and what level 8 is.

    The lowest and the highest of a group are levels of their own, so weights that were made from
    such groups (Q4_1 of GGUF) get the levels they were made from.
    """
    grouped = weight.detach().to(torch.float32, copy=True).reshape(len(weight), -1, GROUP)
    low, scale = _range(grouped)
    levels = grouped.sub_(low - scale / 2).div_(scale).to(torch.int32).clamp_(max=_LEVELS)
    zeros = low + (_LEVELS + 1) / 2 * scale
    pairs = torch.cat([scale, zeros], dim=-1).transpose(0, 1).to(torch.bfloat16)
    return levels.reshape(weight.shape), pairs.contiguous()


def is_quantized(weight: torch.Tensor, groups: int = 512) -> bool:
    """Whether the first groups of weights have 16 levels each, up to the rounding of bfloat16."""
    if weight.dim() != 2 or weight.shape[1] % GROUP:
        return False
    grouped = weight.detach().flatten()[: groups * GROUP].float().reshape(-1, GROUP)
    low, scale = _range(grouped)
    level = ((grouped - low) / scale).round_()
    error = (low + level * scale - grouped).abs_().amax(dim=-1)
    return bool((error <= 2 * _ROUNDING * grouped.abs().amax(dim=-1)).all())


def _range(grouped: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    low = grouped.amin(dim=-1, keepdim=True)
    return low, (grouped.amax(dim=-1, keepdim=True) - low).clamp_(min=1e-12) / _LEVELS


_OPERATORS = ("_reorder_linear_weight", "_linear_pointwise")
_ROWS_HINT = 8


class PackedLinear(nn.Module):  # type: ignore[misc]
    """A `nn.Linear` whose weight is laid out for the CPU once, not at every call; inference only.

    Same results bit for bit; with one thread and bfloat16, 2.0 times faster for 1 row and 1.8 times
    for 8. Uses two operators that torch's own compiler emits and that have no public name.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        super().__init__()
        pack = torch.ops.mkldnn._reorder_linear_weight  # noqa: SLF001
        self._weight = pack(weight.detach(), _ROWS_HINT)
        self._bias = bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [..., in] -> [..., out]"""
        multiply = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001
        return multiply(x, self._weight, self._bias, "none", [], "")


class UnpackedLinear(nn.Module):  # type: ignore[misc]
    """A linear layer whose weight stays as it is, for machines that cannot pack its dtype."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        super().__init__()
        self._weight, self._bias = weight.detach(), bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [..., in] -> [..., out]"""
        return nn.functional.linear(x, self._weight, self._bias)


def can_pack(dtype: torch.dtype = torch.float32) -> bool:
    """Whether this build of torch has the operators, and this CPU instructions for `dtype`."""
    mkldnn = torch.ops.mkldnn
    has_operators = all(hasattr(mkldnn, operator) for operator in _OPERATORS)
    if not has_operators or dtype != torch.bfloat16:
        return has_operators
    return bool(mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001


def _linear(weight: torch.Tensor, bias: torch.Tensor | None = None) -> nn.Module:
    packs = weight.device.type == "cpu" and can_pack(weight.dtype)
    return (PackedLinear if packs else UnpackedLinear)(weight, bias)


def pack_linears(model: nn.Module) -> None:
    """Replace the model's linear layers, where `can_pack`; leave the others."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is not nn.Linear or child.weight.device.type != "cpu":
                continue
            if can_pack(child.weight.dtype):
                setattr(module, name, PackedLinear(child.weight, child.bias))


_MAKERS: dict[str, LinearMaker] = {"none": _linear, "int4": Int4Linear, "int8": Int8Linear}
_OUTPUTS = 16
"""The kernel of 4 bits takes outputs in multiples of so many."""


def fuse(model: PreTrainedModel, options: NetworkOptions) -> None:
    """Replace the layers of a model, where they are of the Llama family; few bits on the CPU only.

    Raises: `CapabilityError` for a quantization that was asked for and cannot be had.
    """
    config = model.config.get_text_config()
    layers = find_layers(model, config.num_hidden_layers)
    on_cpu = model.device.type == "cpu"
    fused = can_fuse(model, layers) and (not on_cpu or can_pack())
    if not fused or not on_cpu:
        _check(options.quantization, "a model of the Llama family on the CPU")
    if not fused:
        return
    assert layers is not None
    bits = _bits(layers, options) if on_cpu else "none"
    kv_heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    make, make_prompt = _makers(bits, model.dtype)
    for number, layer in enumerate(layers):
        layers[number] = FusedLayer(layer, number, kv_heads, make, bits, make_prompt)
    head = model.get_output_embeddings()
    if bits != "none" and type(head) is nn.Linear and not _lacking("int8", (head,)):
        model.set_output_embeddings(Int8Linear(head.weight, head.bias, torch.float32))


def has_kernels(device: str) -> bool:
    """Whether weights of the Llama family are laid out there for kernels of the CPU."""
    return device == "cpu" and can_pack()


def _makers(bits: Quantization, dtype: torch.dtype) -> tuple[LinearMaker, LinearMaker | None]:
    """Layers for answers and for prompts; None: prompts have those of answers.

    Of 4 bits the kernel widens the weights for every few rows, so prompts have another one.
    """
    if bits != "int4":
        return _MAKERS[bits], None
    if dtype == torch.float32:
        return Int4LinearOfFloat32, _linear
    return Int4Linear, Int8Linear if _has_vnni() else None


def _bits(layers: nn.ModuleList, options: NetworkOptions) -> Quantization:
    linears = [part for layer in layers for part in layer.modules() if type(part) is nn.Linear]
    wanted = options.quantization
    if wanted != "auto":
        _check(wanted, _lacking(wanted, linears))
        return wanted
    if options.dtype == "float32":  # asked for, not what the machine has in place of bfloat16
        return "none"
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
    dtypes = {linear.weight.dtype for linear in linears}
    if wanted == "int8":
        if not _has_vnni():
            return "a CPU with AVX-512 VNNI"
        return "" if dtypes <= {torch.bfloat16} else "dtype: bfloat16"
    if not dtypes <= {torch.bfloat16, torch.float32}:
        return "dtype: bfloat16 or float32"
    if not hasattr(torch, "_weight_int4pack_mm_for_cpu"):
        return "a build of torch with `_weight_int4pack_mm_for_cpu`"
    shapes = [linear.weight.shape for linear in linears]
    if any(outputs % _OUTPUTS or inputs % GROUP for outputs, inputs in shapes):
        return f"layers whose inputs are multiples of {GROUP}, and outputs of {_OUTPUTS}"
    return ""


def _has_vnni() -> bool:
    """Whether sums of products of 8 bits are exact and fast."""
    can = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(can.get("avx512_vnni") and hasattr(torch.ops.onednn, "qlinear_pointwise"))
