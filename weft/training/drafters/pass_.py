"""Training of PaSS's look-ahead tokens (arXiv 2311.13581): cross entropy on the text's own tokens.

Only their embeddings are trained; the target is frozen.
"""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy

from weft.training.devices import mixed_precision
from weft.training.drafters.learned_rows import FollowingRows, RowsObjective
from weft.training.drafters.spec import DrafterSpec
from weft.training.frame import Schedule


class PassObjective(RowsObjective):
    """Implements `DrafterObjective`. All distances have the same weight."""

    key = "ahead"

    def rows_loss(self, rows: FollowingRows) -> torch.Tensor:
        with mixed_precision(rows.student.device):
            logits = self._teacher.head(rows.student[rows.valid]).float()
        wanted = rows.wanted[rows.valid]
        return cross_entropy(logits, wanted, reduction="sum") / max(len(wanted), 1)


KIND = DrafterSpec(
    "pass",
    "look-ahead tokens: the target itself guesses behind them, a chain at a time",
    Schedule(steps=400, texts=2, longest=512, rate=1e-2, warm_up=0.0),
    {"ahead": 4, "points": 24},
    PassObjective.begin,
)
