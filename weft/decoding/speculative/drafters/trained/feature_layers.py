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
from torch.nn.functional import scaled_dot_product_attention, silu

from weft.decoding.network.network import Network
from weft.decoding.network.rotary import Rotary, Rotation, rotate

EAGLE_SIZES: Final = ("taps", "heads", "kv_heads", "head_dim", "inner", "theta")
"""What a config has to say of a layer beside the target's width."""

_ASIDE: Final = 0.1
_QUIET: Final = 0.3
"""What the head reads at first, in size: it should not be sure of anything yet."""

EagleAttend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
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
        self.norm_token, self.norm_state = RmsNormModule(width), RmsNormModule(width)
        self.join = nn.Linear(2 * width, width, bias=False)
        self.norm_attention, self.norm_inner, self.norm_out = (
            RmsNormModule(width) for _ in range(3)
        )
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

    def turns(self, positions: torch.Tensor) -> Rotation:
        """Of rows at `positions` [rows]."""
        size = self.shape.head_dim
        pairs = torch.arange(0, size, 2, device=positions.device) / size
        return Rotary(1.0 / float(self.shape.theta) ** pairs).turns(positions)

    def forward(
        self, tokens: torch.Tensor, states: torch.Tensor, turns: Rotation, attend: EagleAttend
    ) -> torch.Tensor:
        """tokens, states: [rows, width], embeddings and states; returns [rows, width]."""
        x = self.join(torch.cat([self.norm_token(tokens), self.norm_state(states)], dim=-1))
        entering = self.norm_attention(x)
        found = attend(
            rotate(self._split(self.query(entering)), turns),
            rotate(self._split(self.key(entering)), turns),
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


class RmsNormModule(nn.Module):  # type: ignore[misc]
    """Root mean square normalisation of [.., width], in float32, returned as it came."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [.., width]"""
        wide = x.float()
        scaled = wide * (wide.square().mean(dim=-1, keepdim=True) + 1e-5).rsqrt()
        return (scaled * self.weight).to(x.dtype)


DFLASH_SIZES: Final = ("block", "taps", "layers", "heads", "kv_heads", "head_dim", "inner", "theta")
"""What a config has to say of a network beside the target's width."""

_DFLASH_QUIET: Final = 0.3
"""What the head reads at first, in size: it should not be sure of anything yet."""

KeysAndValues = tuple[torch.Tensor, torch.Tensor]
"""Each [kv_heads, rows, head_dim]."""
DFlashAttend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
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
        self.norm_attention, self.norm_inner = RmsNormModule(width), RmsNormModule(width)
        self.query = nn.Linear(width, shape.heads * shape.head_dim, bias=False)
        self.key = nn.Linear(width, narrow, bias=False)
        self.value = nn.Linear(width, narrow, bias=False)
        self.output = nn.Linear(shape.heads * shape.head_dim, width, bias=False)
        self.gate = nn.Linear(width, shape.inner, bias=False)
        self.up = nn.Linear(width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, width, bias=False)

    def remembered(self, context: torch.Tensor, turns: Rotation) -> KeysAndValues:
        """Of fused features [rows, width]."""
        return rotate(self._split(self.key(context)), turns), self._split(self.value(context))

    def forward(
        self, x: torch.Tensor, turns: Rotation, number: int, attend: DFlashAttend
    ) -> torch.Tensor:
        """x: [rows, width]; `number` of this layer."""
        entering = self.norm_attention(x)
        keys, values = self.remembered(entering, turns)
        found = attend(number, rotate(self._split(self.query(entering)), turns), keys, values)
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
        self.norm_context, self.norm_out = RmsNormModule(shape.width), RmsNormModule(shape.width)
        self.mask = nn.Parameter(torch.randn(shape.width) * 0.02)
        self.layers = nn.ModuleList(DFlashLayer(shape) for _ in range(shape.layers))
        nn.init.constant_(self.norm_out.weight, _DFLASH_QUIET)

    def turns(self, positions: torch.Tensor) -> Rotation:
        """Of rows at `positions` [rows]."""
        size = self.shape.head_dim
        pairs = torch.arange(0, size, 2, device=positions.device) / size
        return Rotary(1.0 / float(self.shape.theta) ** pairs).turns(positions)

    def remembered(self, features: torch.Tensor, turns: Rotation) -> list[KeysAndValues]:
        """What each layer keeps of features [rows, taps * width]."""
        context = self.norm_context(self.fuse(features))
        return [layer.remembered(context, turns) for layer in self.layers]

    def forward(self, last: torch.Tensor, turns: Rotation, attend: DFlashAttend) -> torch.Tensor:
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


class LayerCache:
    """Rows are committed in order; drafted ones may follow, and go at the next `crop`."""

    def __init__(self) -> None:
        self.length = 0
        self._buffer: torch.Tensor | None = None

    def crop(self, length: int) -> None:
        """Forget all rows after the first `length`."""
        self.length = min(self.length, length)

    def attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        sees: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Add the rows' keys and values; attention of their queries.

        query: [heads, rows, head_dim]; key, value: [kv_heads, rows, head_dim]; sees: bool [rows,
        length with them], None for all. Returns [heads, rows, head_dim].
        """
        keys, values = self.append(key, value)
        kv_heads, _, width = keys.shape
        grouped = query.reshape(1, kv_heads, -1, width)  # heads that share keys, as more rows
        mask = None if sees is None else sees.repeat(len(query) // kv_heads, 1)
        found = scaled_dot_product_attention(grouped, keys[None], values[None], mask)
        return found.reshape(query.shape)

    def append(self, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Add rows, [kv_heads, rows, head_dim] of each; all keys and values with them."""
        end = self.length + key.shape[1]
        if self._buffer is None or self._buffer.shape[2] < end:
            room = key.new_zeros(2, key.shape[0], 1 << max(end - 1, 127).bit_length(), key.shape[2])
            if self._buffer is not None:
                room[:, :, : self.length] = self._buffer[:, :, : self.length]
            self._buffer = room
        self._buffer[0, :, self.length : end] = key
        self._buffer[1, :, self.length : end] = value
        self.length = end
        return self._buffer[0, :, :end], self._buffer[1, :, :end]


_UNIT_ROWS: Final = 64


class DraftVocabularyHead:
    """Logits of the tokens `ids` [ids], ascending, by the network's own head.

    The head is read as the linear map it is, whatever it is made of and wherever it lies.
    """

    def __init__(self, network: Network, ids: torch.Tensor) -> None:
        like = network.embed([0])
        self.ids = ids.to(like.device)
        bias = network.head(torch.zeros_like(like))[0, self.ids]
        unit = torch.eye(network.width, dtype=like.dtype, device=like.device)
        columns = [network.head(piece)[:, self.ids] - bias for piece in unit.split(_UNIT_ROWS)]
        self._weight = torch.cat(columns).T.contiguous()  # [ids, width]
        self._bias = bias

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """[..., width] -> [..., ids]"""
        return torch.nn.functional.linear(hidden.to(self._weight.dtype), self._weight, self._bias)
