"""The head of a network for some tokens only: most of what is drafted is of few tokens.

So a small model's drafter is not dearer than the model (EAGLE-3, arXiv 2503.01840, drafts from a
vocabulary of its own for the same reason).
"""

from __future__ import annotations

from typing import Final

import torch

from weft.decoding.network.network import Network

_PIECE: Final = 64


class VocabularyRows:
    """Logits of the tokens `ids` [ids], ascending, by the network's own head.

    The head is read as the linear map it is, whatever it is made of and wherever it lies.
    """

    def __init__(self, network: Network, ids: torch.Tensor) -> None:
        like = network.embed([0])
        self.ids = ids.to(like.device)
        bias = network.head(torch.zeros_like(like))[0, self.ids]
        unit = torch.eye(network.width, dtype=like.dtype, device=like.device)
        columns = [network.head(piece)[:, self.ids] - bias for piece in unit.split(_PIECE)]
        self._weight = torch.cat(columns).T.contiguous()  # [ids, width]
        self._bias = bias

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """[..., width] -> [..., ids]"""
        return torch.nn.functional.linear(hidden.to(self._weight.dtype), self._weight, self._bias)
