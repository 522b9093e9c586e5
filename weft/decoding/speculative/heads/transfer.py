"""Hidden transfer's maps: from a token's state, states for the positions after it.

After arXiv 2404.12022: one linear map an offset, at one layer of the target. Knows no draft.
"""

from __future__ import annotations

import torch
from torch import nn


class Transfer(nn.Module):  # type: ignore[misc]
    """States [rows, width] to [rows, offsets, width]. It begins as the identity at every offset."""

    def __init__(self, offsets: int, width: int) -> None:
        super().__init__()
        self.maps = nn.Parameter(torch.eye(width).repeat(offsets, 1, 1))

    @property
    def offsets(self) -> int:
        """How many positions ahead there are states for."""
        return len(self.maps)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """states: [rows, width]; returns [rows, offsets, width]."""
        return torch.einsum("rw,ovw->rov", states, self.maps)
