"""Medusa's heads (arXiv 2401.10774): from one hidden state to states for the tokens further on.

What reads those states is the model's own head. Knows no vocabulary.
"""

from __future__ import annotations

import torch


class MedusaHeads(torch.nn.Module):  # type: ignore[misc]
    """`heads` residual blocks, the first for the token after the next.

    A block adds `out(silu(into(hidden)))`, with `out` zero at first, so that training starts from
    the model's guess at the next token. Medusa adds `silu(into(hidden))` alone and gives each head
    a copy of the model's head to train; with that head shared and frozen, the second matrix takes
    the copy's place at a fraction of its size.
    """

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.into = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(heads))
        self.out = torch.nn.ModuleList(
            torch.nn.Linear(width, width, bias=False) for _ in range(heads)
        )
        for layer in self.out:
            torch.nn.init.zeros_(layer.weight)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """hidden: [..., width], what the model's head reads -> [heads, ..., width]"""
        return torch.stack([self.one(head, hidden) for head in range(len(self.into))])

    def one(self, head: int, hidden: torch.Tensor) -> torch.Tensor:
        """[..., width] -> [..., width], of one head."""
        made: torch.Tensor = self.out[head](torch.nn.functional.silu(self.into[head](hidden)))
        return hidden + made
