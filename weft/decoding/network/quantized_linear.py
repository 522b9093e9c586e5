"""Linear layers of few bits on the CPU, by kernels of torch that add each row's sums in one order.

A row's product does not depend on the rows beside it, so a draft that is read in one pass gets the
logits, bit for bit, that its tokens get one by one.
"""

from __future__ import annotations

import torch
from torch import nn

GROUP = 32
_LEVELS = 15
_ROUNDING = 2.0**-8
"""How far bfloat16 may have moved a number, relative to it; twice what one rounding does."""


class Int4Linear(nn.Module):  # type: ignore[misc]
    """Weights in 4 bits, by groups of 32 inputs a scale and a zero point; bfloat16 rows.

    weight: [out, in], bias: [out] or None.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        super().__init__()
        levels, scales_and_zeros = quantize(weight)
        self._weight = torch.ops.aten._convert_weight_to_int4pack_for_cpu(levels, 1)  # noqa: SLF001
        self._scales_and_zeros = scales_and_zeros
        self._bias = bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [rows, in] -> [rows, out]"""
        multiply = torch.ops.aten._weight_int4pack_mm_for_cpu.default  # noqa: SLF001
        y = multiply(x, self._weight, GROUP, self._scales_and_zeros)
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
