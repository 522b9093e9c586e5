"""What ParScale adds to a model: keys and values before the text of each stream, and the mixing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch.nn.functional import linear, silu

SMOOTHING: Final = 0.01
"""So much of the weight is spread evenly over the streams, whatever the mixing says."""


@dataclass(frozen=True, slots=True, eq=False)
class Streams:
    """keys, values     [streams, layers, kv_heads, prefix, head_dim]; keys are not turned
    inner, inner_bias   [width, width * streams], [width]: the streams' states to one; of these the
                        streams are the fastest index
    outer, outer_bias   [streams, width], [streams]: that to the weight of each stream

    Raises: `ValueError` where sizes do not fit together.
    """

    keys: torch.Tensor
    values: torch.Tensor
    inner: torch.Tensor
    inner_bias: torch.Tensor
    outer: torch.Tensor
    outer_bias: torch.Tensor

    def __post_init__(self) -> None:
        count, width = self.outer.shape
        shapes = (self.keys.shape[0], tuple(self.inner.shape), tuple(self.inner_bias.shape))
        fits = shapes == (count, (width, width * count), (width,))
        if not fits or self.keys.shape != self.values.shape or self.keys.ndim != 5:
            raise ValueError(f"streams of unlike sizes: {count} of width {width}, and {shapes}")

    @classmethod
    def random(
        cls,
        count: int,
        prefix: int,
        *,
        layers: int,
        kv_heads: int,
        head_dim: int,
        width: int,
        seed: int,
    ) -> Streams:
        """Untrained ones: prefixes like the keys of a model, and a mixing that prefers nobody."""
        chance = torch.Generator().manual_seed(seed)
        shape = (count, layers, kv_heads, prefix, head_dim)
        return cls(
            torch.randn(shape, generator=chance),
            torch.randn(shape, generator=chance),
            torch.randn((width, width * count), generator=chance) * (width * count) ** -0.5,
            torch.zeros(width),
            torch.randn((count, width), generator=chance) * width**-0.5,
            torch.zeros(count),
        )

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.keys)

    @property
    def prefix(self) -> int:
        """How many learned tokens stand before the text."""
        return int(self.keys.shape[3])

    def mixed(self, hidden: torch.Tensor) -> torch.Tensor:
        """[streams, rows, width], what leaves the last layer, to [rows, width]."""
        together = hidden.permute(1, 2, 0).flatten(1)  # [rows, width * streams]
        inner = silu(linear(together, self.inner.to(hidden), self.inner_bias.to(hidden)))
        scores = linear(inner, self.outer.to(hidden), self.outer_bias.to(hidden))
        weights = scores.float().softmax(dim=-1) * (1.0 - SMOOTHING) + SMOOTHING / self.count
        return torch.einsum("rs,srw->rw", weights.to(hidden), hidden)
