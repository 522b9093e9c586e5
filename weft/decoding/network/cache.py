"""Keys and values of every row of the batch, in buffers that only grow.

Each row owns one slot and fills its columns from the left, so rows come and go without moving.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch

from weft.decoding.network.rotary import Rotation, rotate

_MOST_WINDOWS = 64
"""Views that are kept: the next passes of the same rows need the same, on a CPU for 32 tokens."""
Windows: TypeAlias = tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]


class KvCache:
    """One buffer for all layers: [layers, slots, 2, kv_heads, columns, head_dim]; 2 is key, value.

    So what one head of attention reads lies in one stretch; a token is written in several.

    Layers are called by their numbers in the whole model, of which the first here is `first`.

    Fresh columns are zero, not uninitialised: a masked NaN would still poison an attention sum.
    """

    def __init__(
        self,
        layers: int,
        kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
        first: int = 0,
    ) -> None:
        self._first = first
        shape = (layers, 0, 2, kv_heads, 0, head_dim)
        self._set(torch.zeros(shape, dtype=dtype, device=device))

    def __getitem__(self, layer: int) -> torch.Tensor:
        """One layer's view: [2, slots, kv_heads, columns, head_dim]."""
        return self._views[layer - self._first]

    def halves(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """One layer's keys and values: [slots, kv_heads, columns, head_dim] each."""
        return self._halves[layer - self._first]

    def windows(self, low: int, high: int, columns: int) -> Windows:
        """Keys and values of slots `low:high` and the first `columns`, of all layers at once.

        By layer views of [slots, kv_heads, columns, head_dim], which see what is written later.
        """
        views = self._windows.get((low, high, columns))
        if views is None:
            keys, values = self.buffer[:, low:high, :, :, :columns].unbind(2)
            views = keys.unbind(), values.unbind()
            if len(self._windows) >= _MOST_WINDOWS:
                self._windows.clear()
            self._windows[low, high, columns] = views
        return views

    def reserve(self, slots: int, columns: int) -> None:
        """Make room for `slots` rows of `columns` tokens, keeping what is there.

        Sizes grow by doubling, so that the copies cost a constant per token.
        """
        layers, old_slots, halves, kv_heads, old_columns, head_dim = self.buffer.shape
        if slots <= old_slots and columns <= old_columns:
            return
        new_slots = max(old_slots, _power_of_two(slots))
        new_columns = max(old_columns, _power_of_two(columns, at_least=128))
        grown = self.buffer.new_zeros(layers, new_slots, halves, kv_heads, new_columns, head_dim)
        grown[:, :old_slots, :, :, :old_columns] = self.buffer
        self._set(grown)

    def places(self, slots: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        """Where `write` puts tokens of these slots and columns, until the buffer grows:
        [tokens * 2 * kv_heads]
        """
        slot_size, heads = self._strides
        return ((slots * slot_size + columns).unsqueeze(1) + heads).flatten()

    def write(self, layer: int, places: torch.Tensor, tokens: torch.Tensor) -> None:
        """Put a layer's keys, then its values, of tokens: [tokens, 2 * kv_heads, head_dim]."""
        self._flat[layer - self._first].index_copy_(0, places, tokens.flatten(0, 1))

    def copy(self, source: int, target: int, columns: int) -> None:
        """Copy the first `columns` tokens of slot `source` to slot `target`."""
        self.buffer[:, target, :, :, :columns] = self.buffer[:, source, :, :, :columns]

    def move(
        self, source: int, first: int, tokens: int, target: int, at: int, by: Rotation
    ) -> None:
        """Put a copy of `tokens` columns from `first` of slot `source` at column `at` of `target`.

        Their keys are turned `by`. The stretches may overlap.
        """
        taken = self.buffer[:, source, :, :, first : first + tokens].clone()
        place = self.buffer[:, target, :, :, at : at + tokens]
        place[:, 0] = rotate(taken[:, 0], by)
        place[:, 1] = taken[:, 1]

    def splice(self, sources: Sequence[tuple[int, int]], slot: int, columns: Sequence[int]) -> None:
        """Copy single tokens, each given as (slot, column), to `columns` of `slot`."""
        slots = torch.tensor([source for source, _ in sources], device=self.buffer.device)
        taken = torch.tensor([column for _, column in sources], device=self.buffer.device)
        into = torch.tensor(columns, device=self.buffer.device)
        for layer in self.buffer:  # one at a time: the copy on the way is that much smaller
            layer[slot][:, :, into] = layer[slots, :, :, taken].permute(1, 2, 0, 3)

    def keys(self, slot: int, column: int) -> torch.Tensor:
        """One token's keys: [layers, kv_heads, 1, head_dim]."""
        return self.buffer[:, slot, 0, :, column : column + 1]

    def column(self, slot: int, column: int) -> torch.Tensor:
        """One token's keys and values: [layers, 2, kv_heads, head_dim]."""
        return self.buffer[:, slot, :, :, column]

    def written(self, slot: int, column: int) -> bool:
        """Whether every layer has put a key there."""
        return bool(self.keys(slot, column).flatten(1).any(dim=1).all())

    def _set(self, buffer: torch.Tensor) -> None:
        self.buffer = buffer
        self._windows: dict[tuple[int, int, int], Windows] = {}
        self._views = tuple(buffer.transpose(1, 2))
        self._halves = tuple((keys, values) for keys, values in self._views)
        self._flat = tuple(buffer.flatten(1, 4))
        heads, columns = buffer.shape[2] * buffer.shape[3], buffer.shape[4]
        self._strides = heads * columns, torch.arange(heads, device=buffer.device) * columns


def _power_of_two(size: int, at_least: int = 1) -> int:
    return max(1 << (size - 1).bit_length(), at_least)
