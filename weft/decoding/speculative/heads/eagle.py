"""EAGLE's network: one decoder layer over what a target felt about a token and the token after it.

The input of EAGLE-3 (arXiv 2503.01840): the states that enter several layers of the target, fused;
the states of the layer itself take their place where the target has not read yet. Knows no tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

import torch
from torch import nn
from torch.nn.functional import silu

from weft.decoding.concurrent.rotary import Rotary, Turns, turn

SIZES: Final = ("taps", "heads", "kv_heads", "head_dim", "inner", "theta")
"""What a config has to say of a layer beside the target's width."""

_ASIDE: Final = 0.1
_QUIET: Final = 0.3
"""What the head reads at first, in size: it should not be sure of anything yet."""

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Attention of queries [heads, rows, head_dim] with the keys and values [kv_heads, rows, head_dim]
of the same rows, and of whatever else they see: [heads, rows, head_dim].
"""


@dataclass(frozen=True, slots=True)
class EagleShape:
    """Sizes: `width` is the target's, `taps` how many of its layers are looked at, `inner` that of
    the feed-forward layer; `theta` is the base of the rotary positions.

    Raises: `ValueError` for sizes that do not go together.
    """

    width: int
    taps: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int
    theta: int = 10_000

    def __post_init__(self) -> None:
        if min(asdict(self).values()) < 1 or self.heads % self.kv_heads or self.head_dim % 2:
            raise ValueError(f"no layer has {self}")


class EagleLayer(nn.Module):  # type: ignore[misc]
    """States [rows, width] and embeddings of the tokens after them, to states of those tokens.

    A row stands at the position of its state. What it returns is what a later row takes as its
    state; `ready` makes it what the target's head reads. It begins near what carries the state of
    the last tapped layer on as it is: half the loss after the first steps.
    """

    def __init__(self, shape: EagleShape) -> None:
        super().__init__()
        width, wide = shape.width, shape.heads * shape.head_dim
        narrow = shape.kv_heads * shape.head_dim
        self.shape = shape
        self.fuse = nn.Linear(shape.taps * width, width, bias=False)
        self.norm_token, self.norm_state = Norm(width), Norm(width)
        self.join = nn.Linear(2 * width, width, bias=False)
        self.norm_attention, self.norm_inner, self.norm_out = (Norm(width) for _ in range(3))
        self.query = nn.Linear(width, wide, bias=False)
        self.key = nn.Linear(width, narrow, bias=False)
        self.value = nn.Linear(width, narrow, bias=False)
        self.output = nn.Linear(wide, width, bias=False)
        self.gate = nn.Linear(width, shape.inner, bias=False)
        self.up = nn.Linear(width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, width, bias=False)
        for carries in (self.fuse, self.join):
            with torch.no_grad():
                carries.weight *= _ASIDE
                carries.weight[:, -width:] += torch.eye(width)
        nn.init.constant_(self.norm_out.weight, _QUIET)

    def turns(self, positions: torch.Tensor) -> Turns:
        """Of rows at `positions` [rows]."""
        size = self.shape.head_dim
        pairs = torch.arange(0, size, 2, device=positions.device) / size
        return Rotary(1.0 / float(self.shape.theta) ** pairs).turns(positions)

    def forward(
        self, tokens: torch.Tensor, states: torch.Tensor, turns: Turns, attend: Attend
    ) -> torch.Tensor:
        """tokens, states: [rows, width], embeddings and states; returns [rows, width]."""
        x = self.join(torch.cat([self.norm_token(tokens), self.norm_state(states)], dim=-1))
        entering = self.norm_attention(x)
        found = attend(
            turn(self._split(self.query(entering)), turns),
            turn(self._split(self.key(entering)), turns),
            self._split(self.value(entering)),
        )
        x = x + self.output(found.transpose(0, 1).flatten(1))
        entering = self.norm_inner(x)
        return x + self.down(silu(self.gate(entering)) * self.up(entering))

    def ready(self, states: torch.Tensor) -> torch.Tensor:
        """What the target's head reads."""
        return self.norm_out(states)

    def _split(self, flat: torch.Tensor) -> torch.Tensor:
        """[rows, heads * head_dim] -> [heads, rows, head_dim]"""
        return flat.unflatten(-1, (-1, self.shape.head_dim)).transpose(0, 1)


class Norm(nn.Module):  # type: ignore[misc]
    """Root mean square normalisation of [.., width], in float32, returned as it came."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [.., width]"""
        wide = x.float()
        scaled = wide * (wide.square().mean(dim=-1, keepdim=True) + 1e-5).rsqrt()
        return (scaled * self.weight).to(x.dtype)
