"""Keys and values of one sequence in one layer of a drafter. What was only drafted is forgotten.

Knows tensors; knows no tokens.
"""

from __future__ import annotations

import torch
from torch.nn.functional import scaled_dot_product_attention


class Memory:
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
