"""One weight matrix of a layer: its size, and how tensor parallelism cuts it. Knows no hardware."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Cut = Literal["heads", "kv_heads", "width", "experts", "whole"]
Role = Literal["attention", "mlp", "experts", "router", "embedding", "head"]


@dataclass(frozen=True, slots=True)
class Matrix:
    """`copies` matrices of `inputs` x `outputs`.

    cut         what is divided among tensor-parallel ranks: attention heads, key/value heads
                (which are repeated where there are fewer than ranks), the inner width of an MLP,
                whole experts or their width, or nothing
    row_cut     the cut divides the inputs (as in the output projection), not the outputs
    active      of `copies`, how many one token passes through
    """

    name: str
    role: Role
    inputs: int
    outputs: int
    cut: Cut
    row_cut: bool = False
    copies: int = 1
    active: int = 1

    @property
    def parameters(self) -> int:
        """Weights of all copies."""
        return self.inputs * self.outputs * self.copies

    @property
    def active_parameters(self) -> int:
        """Weights that one token is multiplied with."""
        return self.inputs * self.outputs * self.active

    @property
    def quantizable(self) -> bool:
        """Whether AWQ, GPTQ and FP8 store it in fewer bits: linear layers, not router or head."""
        return self.role in ("attention", "mlp", "experts")
