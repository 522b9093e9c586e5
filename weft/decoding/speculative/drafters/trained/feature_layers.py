"""Decoder layers on a target's features: EAGLE's layer, DFlash's network, their shared parts.

Features are the input states of several layers of the target, fused (EAGLE-3, arXiv 2503.01840).
Parameter names are those of stored weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Final, Protocol, TypeVar

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention, silu

from weft.decoding.network.network import Network
from weft.decoding.network.rotary import Rotary, Rotation, rotate
from weft.decoding.speculative.drafter import MethodDrafter, SpeculativeMethod, TargetOutputs
from weft.decoding.speculative.trained_drafter import TrainedDrafter

_NOISE: Final = 0.1
_QUIET: Final = 0.3
"""The initial scale of the head's input, so that its first guesses are uncertain."""
_LARGEST: Final = (1 << 16, 1 << 30)
"""The largest size, and the largest base of rotary positions."""

KeysAndValues = tuple[torch.Tensor, torch.Tensor]
"""Each [kv_heads, rows, head_dim]."""
EagleAttend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Attention of queries [heads, rows, head_dim] to keys and values [kv_heads, rows, head_dim] of the
same rows and of other visible ones: [heads, rows, head_dim].
"""
DFlashAttend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""The same in a layer by number, with the features before the rows' blocks."""


@dataclass(frozen=True, slots=True)
class LayerVariant:
    """What differs between published layers besides their sizes.

    eps                   added to mean squares by norms
    frequencies           [head_dim / 2] of the rotary positions; empty: those of `theta`
    head_norms            query and key heads are normalised, as in Qwen3
    norm_before_residual  EAGLE-3's residual is the normalised state, not the state
    """

    eps: float = 1e-5
    frequencies: tuple[float, ...] = ()
    head_norms: bool = False
    norm_before_residual: bool = False


PLAIN_LAYER: Final = LayerVariant()


@dataclass(frozen=True, slots=True, kw_only=True)
class EagleShape:
    """Sizes: `width` is the target's, `taps` the number of its layers that are read, `inner` the
    width of the feed-forward layers; `theta` is the base of the rotary positions.

    Raises: `ValueError` for inconsistent sizes.
    """

    width: int
    taps: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int
    theta: int = 10_000
    variant: LayerVariant = PLAIN_LAYER

    def __post_init__(self) -> None:
        sizes = (self.width, *self.settings.values())
        if min(sizes) < 1 or self.heads % self.kv_heads or self.head_dim % 2:
            raise ValueError(f"no layer has {self}")

    @property
    def settings(self) -> dict[str, int]:
        """The sizes without the target's width."""
        return {name: getattr(self, name) for name in _sizes(type(self))}

    def rotation(self, positions: torch.Tensor) -> Rotation:
        """The rotation of `positions` [rows]."""
        if self.variant.frequencies:
            given = torch.tensor(self.variant.frequencies, device=positions.device)
            return Rotary(given).turns(positions)
        pairs = torch.arange(0, self.head_dim, 2, device=positions.device) / self.head_dim
        return Rotary(1.0 / float(self.theta) ** pairs).turns(positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class DFlashShape(EagleShape):
    """A shape with `layers`, and `block` slots, the first of which has the last known token."""

    block: int
    layers: int

    def __post_init__(self) -> None:
        EagleShape.__post_init__(self)
        if self.block < 2:
            raise ValueError(f"no network has {self}")


ShapeT = TypeVar("ShapeT", bound=EagleShape)


def _sizes(shape: type[EagleShape]) -> list[str]:
    return [each.name for each in fields(shape) if each.name not in {"width", "variant"}]


def read_form(trained: TrainedDrafter) -> int:
    """1: weft's own form; 2: the published one, which vLLM can load, too.

    Raises: `CapabilityError` for another.
    """
    return trained.whole("form", 1, 2) if "form" in trained.settings else 1


def read_shape(
    trained: TrainedDrafter,
    shape: type[ShapeT],
    width: int,
    variant: LayerVariant = PLAIN_LAYER,
) -> ShapeT:
    """The sizes in a drafter's config. Raises: `CapabilityError` for invalid ones."""
    sizes = {name: trained.whole(name, 1, _LARGEST[name == "theta"]) for name in _sizes(shape)}
    try:
        return shape(width=width, variant=variant, **sizes)
    except ValueError as error:
        raise trained.broken(str(error)) from error


class DecoderLayer(nn.Module):  # type: ignore[misc]
    """Attention, then a gated feed-forward layer, with visibility given by the caller."""

    def _add_parts(self, shape: EagleShape, entering: int | None = None) -> None:
        """`entering`: width of the rows that attend, where a subclass makes them; it has no
        `norm_attention` then.
        """
        width, wide = shape.width, shape.heads * shape.head_dim
        narrow, eps = shape.kv_heads * shape.head_dim, shape.variant.eps
        self._head_dim = shape.head_dim
        if entering is None:
            self.norm_attention = RmsNormModule(width, eps)
        self.norm_inner = RmsNormModule(width, eps)
        self.norm_query, self.norm_key = (
            RmsNormModule(shape.head_dim, eps) if shape.variant.head_norms else nn.Identity()
            for _ in range(2)
        )
        self.query = nn.Linear(entering or width, wide, bias=False)
        self.key = nn.Linear(entering or width, narrow, bias=False)
        self.value = nn.Linear(entering or width, narrow, bias=False)
        self.output = nn.Linear(wide, width, bias=False)
        self.gate = nn.Linear(width, shape.inner, bias=False)
        self.up = nn.Linear(width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, width, bias=False)

    def remembered(self, entering: torch.Tensor, turns: Rotation) -> KeysAndValues:
        """Keys and values of rows [rows, width]."""
        keys = self.norm_key(self._split(self.key(entering)))
        return rotate(keys, turns), self._split(self.value(entering))

    def decode(self, x: torch.Tensor, turns: Rotation, attend: EagleAttend) -> torch.Tensor:
        """x: [rows, width] -> [rows, width]"""
        return self.decode_from(x, self.norm_attention(x), turns, attend)

    def decode_from(
        self, x: torch.Tensor, entering: torch.Tensor, turns: Rotation, attend: EagleAttend
    ) -> torch.Tensor:
        """The same, where the rows `entering` attend and are added to `x`."""
        query = rotate(self.norm_query(self._split(self.query(entering))), turns)
        attended = attend(query, *self.remembered(entering, turns))
        x = x + self.output(attended.transpose(0, 1).flatten(1))
        entering = self.norm_inner(x)
        return x + self.down(silu(self.gate(entering)) * self.up(entering))

    def _split(self, flat: torch.Tensor) -> torch.Tensor:
        """[rows, heads * head_dim] -> [heads, rows, head_dim]"""
        return flat.unflatten(-1, (-1, self._head_dim)).transpose(0, 1)


class EagleLayer(DecoderLayer):
    """States [rows, width] and embeddings of the tokens after them, to states of those tokens.

    A row has the position of its state. Its output replaces the target's state in a later row;
    `ready` turns it into the input of the target's head. It is initialised near the identity on the
    last tapped layer's state, which halves the loss after the first steps.
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
        for linear in (self.fuse, self.join):
            with torch.no_grad():
                linear.weight *= _NOISE
                linear.weight[:, -width:] += torch.eye(width)
        nn.init.constant_(self.norm_out.weight, _QUIET)

    def forward(
        self, tokens: torch.Tensor, states: torch.Tensor, turns: Rotation, attend: EagleAttend
    ) -> torch.Tensor:
        """tokens, states: [rows, width], embeddings and states; returns [rows, width]."""
        joined = torch.cat([self.norm_token(tokens), self.norm_state(states)], dim=-1)
        return self.decode(self.join(joined), turns, attend)

    def ready(self, states: torch.Tensor) -> torch.Tensor:
        """The input of the target's head."""
        return self.norm_out(states)


class Eagle3Layer(DecoderLayer):
    """EAGLE-3's layer as others publish it: queries, keys and values are computed from the
    normalised embedding and state side by side. Its interface is that of `EagleLayer`.
    """

    def __init__(self, shape: EagleShape) -> None:
        super().__init__()
        width, eps = shape.width, shape.variant.eps
        self.shape = shape
        self.fuse = nn.Linear(shape.taps * width, width, bias=False)
        self.norm_token, self.norm_state = RmsNormModule(width, eps), RmsNormModule(width, eps)
        self._add_parts(shape, entering=2 * width)
        self.norm_out = RmsNormModule(width, eps)
        with torch.no_grad():  # near the last tapped layer's state at first
            self.fuse.weight *= _NOISE
            self.fuse.weight[:, -width:] += torch.eye(width)
        nn.init.constant_(self.norm_out.weight, _QUIET)

    def forward(
        self, tokens: torch.Tensor, states: torch.Tensor, turns: Rotation, attend: EagleAttend
    ) -> torch.Tensor:
        """tokens, states: [rows, width], embeddings and states; returns [rows, width]."""
        normed = self.norm_state(states)
        residual = normed if self.shape.variant.norm_before_residual else states
        entering = torch.cat([self.norm_token(tokens), normed], dim=-1)
        return self.decode_from(residual, entering, turns, attend)

    def ready(self, states: torch.Tensor) -> torch.Tensor:
        """The input of the head."""
        return self.norm_out(states)


class DFlashLayer(DecoderLayer):
    """A layer over the slots of blocks."""

    def __init__(self, shape: DFlashShape) -> None:
        super().__init__()
        self._add_parts(shape)


class DFlash(nn.Module):  # type: ignore[misc]
    """DFlash's network (arXiv 2602.06036): layers that fill a block of masks from features.

    Every layer attends to the fused features of the read text and to the block, both entirely, so
    that one pass guesses all tokens of the block.
    """

    def __init__(self, shape: DFlashShape) -> None:
        super().__init__()
        self.shape = shape
        self.fuse = nn.Linear(shape.taps * shape.width, shape.width, bias=False)
        eps = shape.variant.eps
        self.norm_context = RmsNormModule(shape.width, eps)
        self.norm_out = RmsNormModule(shape.width, eps)
        self.mask = nn.Parameter(torch.randn(shape.width) * 0.02)
        self.layers = nn.ModuleList(DFlashLayer(shape) for _ in range(shape.layers))
        nn.init.constant_(self.norm_out.weight, _QUIET)

    def remembered(self, features: torch.Tensor, turns: Rotation) -> list[KeysAndValues]:
        """Keys and values of each layer for features [rows, taps * width]."""
        context = self.norm_context(self.fuse(features))
        return [layer.remembered(context, turns) for layer in self.layers]

    def forward(self, last: torch.Tensor, turns: Rotation, attend: DFlashAttend) -> torch.Tensor:
        """Inputs of the target's head for the open slots of a block after each last token.

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
    """Root mean square normalisation of [.., width], in float32, with the input's dtype."""

    def __init__(self, width: int, eps: float = PLAIN_LAYER.eps) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self._eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [.., width]"""
        wide = x.float()
        scaled = wide * (wide.square().mean(dim=-1, keepdim=True) + self._eps).rsqrt()
        return (scaled * self.weight).to(x.dtype)


class LayerCache:
    """Keys and values of one sequence in one layer of a drafter.

    Rows are committed in order; drafted ones may follow, until the next `crop`.
    """

    def __init__(self) -> None:
        self.length = 0
        self._buffer: torch.Tensor | None = None

    def crop(self, length: int) -> None:
        """Drop all rows after the first `length`."""
        self.length = min(self.length, length)

    def attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        sees: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Append the rows' keys and values; attention of their queries.

        query: [heads, rows, head_dim]; key, value: [kv_heads, rows, head_dim]; sees: bool [rows,
        length with them], None for all. Returns [heads, rows, head_dim].
        """
        keys, values = self.append(key, value)
        kv_heads, _, width = keys.shape
        grouped = query.reshape(1, kv_heads, -1, width)  # heads that share keys, as more rows
        mask = None if sees is None else sees.repeat(len(query) // kv_heads, 1)
        attended = scaled_dot_product_attention(grouped, keys[None], values[None], mask)
        return attended.reshape(query.shape)

    def append(self, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Append rows [kv_heads, rows, head_dim]; all keys and values with them."""
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


class DraftHead(Protocol):
    """Logits of the tokens `ids` [ids], in their order."""

    @property
    def ids(self) -> torch.Tensor:
        """The tokens."""

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """[..., width] -> [..., ids]"""


class MatrixHead:
    """Implements `DraftHead` with a matrix [ids, width] of the drafter's own."""

    def __init__(self, ids: torch.Tensor, weight: torch.Tensor) -> None:
        self.ids = ids.to(weight.device)
        self._weight = weight

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """[..., width] -> [..., ids]"""
        return torch.nn.functional.linear(hidden.to(self._weight.dtype), self._weight)


class TargetHead:
    """Implements `DraftHead` with the network's head, for all of its tokens."""

    def __init__(self, network: Network) -> None:
        device = network.embed([0]).device
        self.ids = torch.arange(network.vocabulary_size, device=device)
        self._network = network

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """[..., width] -> [..., ids]"""
        logits = self._network.head(hidden.flatten(0, -2))
        return logits.unflatten(0, hidden.shape[:-1])


class DraftVocabularyHead:
    """Logits of the tokens `ids` [ids], ascending, by the network's own head.

    A small vocabulary keeps the drafter cheap, as in EAGLE-3. The linear map of the head is
    measured with unit vectors, whatever its implementation.
    """

    def __init__(self, network: Network, ids: torch.Tensor) -> None:
        like = network.embed([0])
        self.ids = ids.to(like.device)
        bias = network.head(torch.zeros_like(like))[0, self.ids]
        unit = torch.eye(network.width, dtype=like.dtype, device=like.device)
        columns = [network.head(piece)[:, self.ids] - bias for piece in unit.split(_UNIT_ROWS)]
        self._weight = torch.cat(columns).T.contiguous()  # [ids, width]
        self._bias = bias

    @property
    def matrix(self) -> torch.Tensor | None:
        """[ids, width]; None where the head adds a bias to it."""
        return None if bool(self._bias.any()) else self._weight

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """[..., width] -> [..., ids]"""
        return torch.nn.functional.linear(hidden.to(self._weight.dtype), self._weight, self._bias)


class FeatureDrafter(MethodDrafter):
    """Implements `TargetObserver`: collects features of the layers `taps` until they are drafted
    from.

    Nothing is drafted before the target's features arrive. Positions count from the first token
    with features: only their differences matter.
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
        """New tokens since the last call, and the features of the tokens before them.

        None: there are none, or the token before the last is still unread, as forced tokens are.
        """
        read = self._read
        if not read or self._end[:-1] != read[-1:]:
            return None
        features, self._features, self._read = torch.cat(self._features), [], []
        return [*read[1:], self._end[-1]], features
