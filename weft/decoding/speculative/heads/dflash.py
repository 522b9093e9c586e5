"""DFlash's network (arXiv 2602.06036): layers that fill a block of masks from a target's features.

Every layer takes keys and values of the same fused features of what the target has read, and of
the block; the block sees all of both, so one pass guesses all its tokens. Knows no sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

import torch
from torch import nn
from torch.nn.functional import silu

from weft.decoding.concurrent.rotary import Rotary, Turns, turn
from weft.decoding.speculative.heads.eagle import Norm

SIZES: Final = ("block", "taps", "layers", "heads", "kv_heads", "head_dim", "inner", "theta")
"""What a config has to say of a network beside the target's width."""

_QUIET: Final = 0.3
"""What the head reads at first, in size: it should not be sure of anything yet."""

KeysAndValues = tuple[torch.Tensor, torch.Tensor]
"""Each [kv_heads, rows, head_dim]."""
Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""In a layer, attention of queries [heads, rows, head_dim] with keys and values [kv_heads, rows,
head_dim] of the same rows and with the features before their blocks: [heads, rows, head_dim].
"""


@dataclass(frozen=True, slots=True)
class DFlashShape:
    """Sizes: `width` is the target's, `taps` how many of its layers are looked at, `block` the
    slots of a block with the last known token in its first; `inner` is that of the feed-forward
    layers, `theta` the base of the rotary positions.

    Raises: `ValueError` for sizes that do not go together.
    """

    width: int
    block: int
    taps: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int
    theta: int = 10_000

    def __post_init__(self) -> None:
        apart = self.heads % self.kv_heads or self.head_dim % 2 or self.block < 2
        if min(asdict(self).values()) < 1 or apart:
            raise ValueError(f"no network has {self}")


class DFlashLayer(nn.Module):  # type: ignore[misc]
    """One layer over the slots of blocks."""

    def __init__(self, shape: DFlashShape) -> None:
        super().__init__()
        width, narrow = shape.width, shape.kv_heads * shape.head_dim
        self._head_dim = shape.head_dim
        self.norm_attention, self.norm_inner = Norm(width), Norm(width)
        self.query = nn.Linear(width, shape.heads * shape.head_dim, bias=False)
        self.key = nn.Linear(width, narrow, bias=False)
        self.value = nn.Linear(width, narrow, bias=False)
        self.output = nn.Linear(shape.heads * shape.head_dim, width, bias=False)
        self.gate = nn.Linear(width, shape.inner, bias=False)
        self.up = nn.Linear(width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, width, bias=False)

    def remembered(self, context: torch.Tensor, turns: Turns) -> KeysAndValues:
        """Of fused features [rows, width]."""
        return turn(self._split(self.key(context)), turns), self._split(self.value(context))

    def forward(self, x: torch.Tensor, turns: Turns, number: int, attend: Attend) -> torch.Tensor:
        """x: [rows, width]; `number` of this layer."""
        entering = self.norm_attention(x)
        keys, values = self.remembered(entering, turns)
        found = attend(number, turn(self._split(self.query(entering)), turns), keys, values)
        x = x + self.output(found.transpose(0, 1).flatten(1))
        entering = self.norm_inner(x)
        return x + self.down(silu(self.gate(entering)) * self.up(entering))

    def _split(self, flat: torch.Tensor) -> torch.Tensor:
        """[rows, heads * head_dim] -> [heads, rows, head_dim]"""
        return flat.unflatten(-1, (-1, self._head_dim)).transpose(0, 1)


class DFlash(nn.Module):  # type: ignore[misc]
    """All layers, with what makes context of features and blocks of last tokens."""

    def __init__(self, shape: DFlashShape) -> None:
        super().__init__()
        self.shape = shape
        self.fuse = nn.Linear(shape.taps * shape.width, shape.width, bias=False)
        self.norm_context, self.norm_out = Norm(shape.width), Norm(shape.width)
        self.mask = nn.Parameter(torch.randn(shape.width) * 0.02)
        self.layers = nn.ModuleList(DFlashLayer(shape) for _ in range(shape.layers))
        nn.init.constant_(self.norm_out.weight, _QUIET)

    def turns(self, positions: torch.Tensor) -> Turns:
        """Of rows at `positions` [rows]."""
        size = self.shape.head_dim
        pairs = torch.arange(0, size, 2, device=positions.device) / size
        return Rotary(1.0 / float(self.shape.theta) ** pairs).turns(positions)

    def remembered(self, features: torch.Tensor, turns: Turns) -> list[KeysAndValues]:
        """What each layer keeps of features [rows, taps * width]."""
        context = self.norm_context(self.fuse(features))
        return [layer.remembered(context, turns) for layer in self.layers]

    def forward(self, last: torch.Tensor, turns: Turns, attend: Attend) -> torch.Tensor:
        """What the target's head reads for the open slots of a block after each last token.

        last: [blocks, width] embeddings; turns: of blocks * block rows. Returns [blocks, block - 1,
        width].
        """
        masks = self.mask.to(last.dtype).expand(len(last), self.shape.block - 1, -1)
        x = torch.cat([last[:, None], masks], dim=1).flatten(0, 1)
        for number, layer in enumerate(self.layers):
            x = layer(x, turns, number, attend)
        ready: torch.Tensor = self.norm_out(x).unflatten(0, (-1, self.shape.block))[:, 1:]
        return ready
