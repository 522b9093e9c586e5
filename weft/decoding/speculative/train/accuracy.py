"""How often the guess of each rank was right, at each distance: what trees are built from."""

from __future__ import annotations

import torch


class Accuracy:
    """Counts for `distances` by the first `ranks` of their guesses."""

    def __init__(self, distances: int, ranks: int) -> None:
        self._right = torch.zeros(distances, ranks, dtype=torch.int64)
        self._all = torch.zeros(distances, 1, dtype=torch.int64)

    def add(self, distance: int, logits: torch.Tensor, wanted: torch.Tensor) -> None:
        """logits: [guesses, tokens]; wanted: [guesses], which of these tokens came, -1 for none."""
        self._all[distance] += len(wanted)
        known = wanted >= 0
        logits, wanted = logits[known], wanted[known]
        above = (logits > logits.gather(1, wanted[:, None])).sum(1)
        ranks = self._right.shape[1]
        self._right[distance] += torch.bincount(above[above < ranks], minlength=ranks).cpu()

    def table(self) -> list[list[float]]:
        """[distances][ranks]: shares of all guesses."""
        shares = self._right / self._all.clamp(min=1)
        return [[round(share, 5) for share in row] for row in shares.tolist()]
