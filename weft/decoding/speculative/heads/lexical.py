"""Placeholders of Lexical Unit Decoding: what they read, and what is added to their states.

After arXiv 2405.15208, which tunes the whole model. Here the model stays as it is: only the rows of
placeholders are changed, by an embedding each and by corrections of low rank. Knows no decoding.
"""

from __future__ import annotations

import torch
from torch import nn


class Placeholders(nn.Module):  # type: ignore[misc]
    """`count` embeddings of the given width, and before each of `layers` a correction of `rank`.

    It begins with the embedding of a token, `like` [width], at all of them, and no correction.
    """

    def __init__(self, count: int, layers: tuple[int, ...], rank: int, like: torch.Tensor) -> None:
        super().__init__()
        width = len(like)
        self.layers = layers
        self.rows = nn.Parameter(like.detach().clone().float().repeat(count, 1))
        down = torch.empty(len(layers), rank, width)
        nn.init.normal_(down, std=width**-0.5)
        self.down = nn.Parameter(down)
        self.up = nn.Parameter(torch.zeros(len(layers), width, rank))

    @property
    def count(self) -> int:
        """How many placeholders stand in a row."""
        return len(self.rows)

    def corrected(self, place: int, states: torch.Tensor) -> torch.Tensor:
        """What shall enter layer `layers[place]` of states [..., width] that would enter it."""
        size = states.float().square().mean(dim=-1, keepdim=True).sqrt() + 1e-6
        scaled = (states / size).to(self.down.dtype)
        return states + (scaled @ self.down[place].T @ self.up[place].T) * size
