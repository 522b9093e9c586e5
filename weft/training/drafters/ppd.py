"""Training of PPD's prompt tokens (arXiv 2405.18628): their embeddings, on a frozen target.

The goal is the target's own distribution at that distance: KL, with weights falling by distance.
"""

from __future__ import annotations

from typing import Final

import torch

from weft.training.devices import mixed_precision
from weft.training.drafters.learned_rows import FollowingRows, RowsObjective
from weft.training.drafters.spec import DrafterSpec
from weft.training.frame import Schedule

_FADE: Final = 0.8


class PromptObjective(RowsObjective):
    """Implements `DrafterObjective`. Near prompt tokens have larger weights."""

    key = "prompts"

    def rows_loss(self, rows: FollowingRows) -> torch.Tensor:
        with mixed_precision(rows.student.device):
            goal = self._teacher.head(rows.teacher[rows.valid]).float().log_softmax(-1)
            guessed = self._teacher.head(rows.student[rows.valid]).float().log_softmax(-1)
        apart = (goal.exp() * (goal - guessed)).sum(-1)
        weights = (_FADE**rows.distances)[rows.valid]
        return (weights * apart).sum() / weights.sum().clamp(min=1.0)


KIND = DrafterSpec(
    "ppd",
    "prompt tokens: the target itself guesses behind them",
    Schedule(steps=400, texts=2, longest=512, rate=1e-2, warm_up=0.0),
    {"prompts": 3, "points": 24},
    PromptObjective.begin,
)
