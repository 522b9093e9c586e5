"""Keys and values of every row of the batch, in buffers that only grow.

Each row owns one slot and fills its columns from the left, so rows come and go without moving.
"""

from __future__ import annotations

import torch


class KvCache:
    """One buffer for all layers: [layers, 2, slots, kv_heads, columns, head_dim]; 2 is key, value.

    Fresh columns are zero, not uninitialised: a masked NaN would still poison an attention sum.
    """

    def __init__(
        self,
        layers: int,
        kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        shape = (layers, 2, 0, kv_heads, 0, head_dim)
        self._buffer = torch.zeros(shape, dtype=dtype, device=device)

    def __getitem__(self, layer: int) -> torch.Tensor:
        """One layer's view: [2, slots, kv_heads, columns, head_dim]."""
        return self._buffer[layer]

    def reserve(self, slots: int, columns: int) -> None:
        """Make room for `slots` rows of `columns` tokens, keeping what is there.

        Sizes grow by doubling, so that the copies cost a constant per token.
        """
        layers, two, old_slots, heads, old_columns, width = self._buffer.shape
        if slots <= old_slots and columns <= old_columns:
            return
        new_slots = max(old_slots, _power_of_two(slots))
        new_columns = max(old_columns, _power_of_two(columns, at_least=128))
        grown = self._buffer.new_zeros(layers, two, new_slots, heads, new_columns, width)
        grown[:, :, :old_slots, :, :old_columns] = self._buffer
        self._buffer = grown

    def copy(self, source: int, target: int, columns: int) -> None:
        """Copy the first `columns` tokens of slot `source` to slot `target`."""
        self._buffer[:, :, target, :, :columns] = self._buffer[:, :, source, :, :columns]

    def written(self, slot: int, column: int) -> bool:
        """Whether every layer has put a key there."""
        keys = self._buffer[:, 0, slot, :, column]  # [layers, kv_heads, head_dim]
        return bool(keys.flatten(1).any(dim=1).all())


def _power_of_two(size: int, at_least: int = 1) -> int:
    return max(1 << (size - 1).bit_length(), at_least)
