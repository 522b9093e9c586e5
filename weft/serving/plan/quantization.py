"""How many bytes a weight takes, and in which number format its products are computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Literal

from weft.serving.plan.matrix import Matrix

Compute = Literal["fp32", "bf16", "fp8"]


@dataclass(frozen=True, slots=True)
class Quantization:
    """A number format of the weights.

    plain_bytes       a weight that stays as it is: embedding, head, router, norms
    weight_bits       a weight of a linear layer
    group             weights that share a scale; None: one scale for each output
    group_bytes       the scale, and the zero point where there is one
    compute           the format of the products
    kv_bytes          one number of the KV cache
    argument          vLLM's name for quantizing plain weights while loading them, if it can
    """

    name: str
    plain_bytes: int = 2
    weight_bits: int = 16
    group: int | None = None
    group_bytes: float = 0.0
    compute: Compute = "bf16"
    kv_bytes: int = 2
    argument: str | None = None

    def stored_bytes(self, matrix: Matrix, share: float) -> int:
        """Bytes of the share of `matrix` that one rank holds, scales included."""
        weights = matrix.parameters * share
        if not matrix.quantizable:
            return ceil(weights * self.plain_bytes)
        scales = weights / (self.group or matrix.inputs)
        return ceil(weights * self.weight_bits / 8 + scales * self.group_bytes)


QUANTIZATIONS: Mapping[str, Quantization] = {
    scheme.name: scheme
    for scheme in (
        Quantization("fp32", plain_bytes=4, weight_bits=32, compute="fp32", kv_bytes=4),
        Quantization("bf16"),
        Quantization("fp8", weight_bits=8, group_bytes=4, compute="fp8", argument="fp8"),
        # AWQ and GPTQ: groups of 128 with a 16-bit scale and a 4-bit zero point, bf16 products
        Quantization("int4", weight_bits=4, group=128, group_bytes=2.5),
    )
}
