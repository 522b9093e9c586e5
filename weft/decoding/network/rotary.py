"""Rotary positions (RoFormer, arXiv 2104.09864): keys and queries that are turned once more.

R_a R_b = R_(a+b): what stands at one position can be turned to any other. Knows no model.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Rotation:
    """How far vectors are turned: cosines and sines, each [count, head_dim]."""

    cos: torch.Tensor
    sin: torch.Tensor


class Rotary:
    """The rotation of a model whose halves of a head turn against each other, as Llama's do.

    inv_freq: [head_dim / 2], the angle of each pair for one position, in radians.
    """

    def __init__(self, inv_freq: torch.Tensor) -> None:
        self._angles = torch.cat([inv_freq, inv_freq]).double()

    @property
    def head_dim(self) -> int:
        """Size of the vectors this turns."""
        return len(self._angles)

    def turns(self, by: torch.Tensor) -> Rotation:
        """Turns by so many positions, which may be negative. by: [count], whole numbers."""
        angles = by.to(self._angles.device).double()[:, None] * self._angles
        return Rotation(angles.cos().float(), angles.sin().float())


def rotate(vectors: torch.Tensor, turns: Rotation) -> torch.Tensor:
    """`vectors` [..., count, head_dim], each turned; computed in float32, returned as they came."""
    x = vectors.float()
    half = x.shape[-1] // 2
    crossed = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
    return (x * turns.cos + crossed * turns.sin).to(vectors.dtype)
