"""Decoder layers on a target's features: EAGLE's one layer, DFlash's network, what both share.

Features are the states that enter several layers of the target, fused (EAGLE-3, arXiv 2503.01840).
Names of parameters are those of stored weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Final, TypeVar

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention, silu

from weft.decoding.network.network import Network
from weft.decoding.network.rotary import Rotary, Rotation, rotate
from weft.decoding.speculative.drafter import MethodDrafter, SpeculativeMethod, TargetOutputs
from weft.decoding.speculative.trained_drafter import TrainedDrafter

_ASIDE: Final = 0.1
_QUIET: Final = 0.3
"""What the head reads at first, in size: it should not be sure of anything yet."""
_LARGEST: Final = (1 << 16, 1 << 30)
"""Of sizes, and of the base of rotary positions."""

KeysAndValues = tuple[torch.Tensor, torch.Tensor]
"""Each [kv_heads, rows, head_dim]."""
EagleAttend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Attention of queries [heads, rows, head_dim] with the keys and values [kv_heads, rows, head_dim]
of the same rows, and of whatever else they see: [heads, rows, head_dim].
"""
DFlashAttend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""The same in the layer of a number, with the features before the rows' blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EagleShape:
    """Sizes: `width` is the target's, `taps` how many of its layers are looked at, `inner` that of
    the feed-forward layers; `theta` is the base of the rotary positions.

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

    @property
    def settings(self) -> dict[str, int]:
        """What a config has to say beside the target's width."""
        return {name: size for name, size in asdict(self).items() if name != "width"}

    def rotation(self, positions: torch.Tensor) -> Rotation:
        """Of rows at `positions` [rows]."""
        pairs = torch.arange(0, self.head_dim, 2, device=positions.device) / self.head_dim
        return Rotary(1.0 / float(self.theta) ** pairs).turns(positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class DFlashShape(EagleShape):
    """With `layers`, and `block`: the slots of a block, the last known token in its first."""

    block: int
    layers: int

    def __post_init__(self) -> None:
        EagleShape.__post_init__(self)
        if self.block < 2:
            raise ValueError(f"no network has {self}")


ShapeT = TypeVar("ShapeT", bound=EagleShape)


def read_shape(trained: TrainedDrafter, shape: type[ShapeT], width: int) -> ShapeT:
    """The sizes in a drafter's config. Raises: `CapabilityError` for ones that cannot be."""
    sizes = {
        each.name: trained.whole(each.name, 1, _LARGEST[each.name == "theta"])
        for each in fields(shape)
        if each.name != "width"
    }
    try:
        return shape(width=width, **sizes)
    except ValueError as error:
        raise trained.broken(str(error)) from error


class DecoderLayer(nn.Module):  # type: ignore[misc]
    """Attention, then a gated feed-forward layer, over rows that the caller lets see each other."""

    def _add_parts(self, shape: EagleShape) -> None:
        width, wide = shape.width, shape.heads * shape.head_dim
        narrow = shape.kv_heads * shape.head_dim
        self._head_dim = shape.head_dim
        self.norm_attention, self.norm_inner = RmsNormModule(width), RmsNormModule(width)
        self.query = nn.Linear(width, wide, bias=False)
        self.key = nn.Linear(width, narrow, bias=False)
        self.value = nn.Linear(width, narrow, bias=False)
        self.output = nn.Linear(wide, width, bias=False)
        self.gate = nn.Linear(width, shape.inner, bias=False)
        self.up = nn.Linear(width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, width, bias=False)

    def remembered(self, entering: torch.Tensor, turns: Rotation) -> KeysAndValues:
        """Keys and values of rows [rows, width]."""
        return rotate(self._split(self.key(entering)), turns), self._split(self.value(entering))

    def decode(self, x: torch.Tensor, turns: Rotation, attend: EagleAttend) -> torch.Tensor:
        """x: [rows, width] -> [rows, width]"""
        entering = self.norm_attention(x)
        query = rotate(self._split(self.query(entering)), turns)
        found = attend(query, *self.remembered(entering, turns))
        x = x + self.output(found.transpose(0, 1).flatten(1))
        entering = self.norm_inner(x)
        return x + self.down(silu(self.gate(entering)) * self.up(entering))

    def _split(self, flat: torch.Tensor) -> torch.Tensor:
        """[rows, heads * head_dim] -> [heads, rows, head_dim]"""
        return flat.unflatten(-1, (-1, self._head_dim)).transpose(0, 1)


class EagleLayer(DecoderLayer):
    """States [rows, width] and embeddings of the tokens after them, to states of those tokens.

    A row stands at the position of its state. What it returns takes the place of the target's
    state in a later row; `ready` makes it what the target's head reads. It begins near what carries
    the state of the last tapped layer on as it is: half the loss after the first steps.
    """

    def __init__(self, shape: EagleShape) -> None:
        super().__init__()
        width = shape.width
        self.shape = shape
        self.fuse = nn.Linear(shape.taps * width, width, bias=False)
        self.norm_token, self.norm_state = RmsNormModule(width), RmsNormModule(width)
        self.join = nn.Linear(2 * width, width, bias=False)
        self._add_parts(shape)
        self.norm_out = RmsNormModule(width)
        for carries in (self.fuse, self.join):
            with torch.no_grad():
                carries.weight *= _ASIDE
                carries.weight[:, -width:] += torch.eye(width)
        nn.init.constant_(self.norm_out.weight, _QUIET)

    def forward(
        self, tokens: torch.Tensor, states: torch.Tensor, turns: Rotation, attend: EagleAttend
    ) -> torch.Tensor:
        """tokens, states: [rows, width], embeddings and states; returns [rows, width]."""
        joined = torch.cat([self.norm_token(tokens), self.norm_state(states)], dim=-1)
        return self.decode(self.join(joined), turns, attend)

    def ready(self, states: torch.Tensor) -> torch.Tensor:
        """What the target's head reads."""
        return self.norm_out(states)


class DFlashLayer(DecoderLayer):
    """One layer over the slots of blocks."""

    def __init__(self, shape: DFlashShape) -> None:
        super().__init__()
        self._add_parts(shape)


class DFlash(nn.Module):  # type: ignore[misc]
    """DFlash's network (arXiv 2602.06036): layers that fill a block of masks from features.

    Every layer takes keys and values of the same fused features of what the target has read, and of
    the block; the block sees all of both, so one pass guesses all its tokens.
    """

    def __init__(self, shape: DFlashShape) -> None:
        super().__init__()
        self.shape = shape
        self.fuse = nn.Linear(shape.taps * shape.width, shape.width, bias=False)
        self.norm_context, self.norm_out = RmsNormModule(shape.width), RmsNormModule(shape.width)
        self.mask = nn.Parameter(torch.randn(shape.width) * 0.02)
        self.layers = nn.ModuleList(DFlashLayer(shape) for _ in range(shape.layers))
        nn.init.constant_(self.norm_out.weight, _QUIET)

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
            x = layer.decode(x, turns, partial(attend, number))
        ready: torch.Tensor = self.norm_out(x).unflatten(0, (-1, self.shape.block))[:, 1:]
        return ready


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


class LayerCache:
    """Keys and values of one sequence in one layer of a drafter.

    Rows are committed in order; drafted ones may follow, and go at the next `crop`.
    """

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

    A drafter of few tokens is not dearer than a small model (EAGLE-3 has a vocabulary of its own
    for the same reason). The head is read as the linear map it is, whatever it is made of.
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


class FeatureDrafter(MethodDrafter):
    """Implements `TargetObserver`: keeps what the layers `taps` showed until it is drafted from.

    While the target has not shown what it read, nothing is drafted. Positions count from the first
    token whose features were seen: only their differences matter.
    """

    def __init__(self, method: SpeculativeMethod, taps: tuple[int, ...]) -> None:
        super().__init__(method)
        self.taps = taps
        self._end: list[int] = []
        self._read: list[int] = []
        self._features: list[torch.Tensor] = []

    def extend(self, tokens: Sequence[int]) -> None:
        self._end = [*self._end, *tokens[-2:]][-2:]

    def see(self, outputs: TargetOutputs) -> None:
        if outputs.tokens:
            self._read += outputs.tokens
            self._features.append(torch.cat([outputs.hidden[tap] for tap in self.taps], dim=-1))

    def unread(self) -> tuple[list[int], torch.Tensor] | None:
        """Tokens, and the features of the tokens before them, that were seen since the last time.

        None: nothing, or the token before the last is still to be read (forced tokens come unread).
        """
        read = self._read
        if not read or self._end[:-1] != read[-1:]:
            return None
        features, self._features, self._read = torch.cat(self._features), [], []
        return [*read[1:], self._end[-1]], features
