"""Training of PPD's prompt tokens (arXiv 2405.18628): their embeddings only, the target is frozen.

Each learns the target's own distribution of the token that far ahead: KL, fading with the distance.
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
    """Implements `DrafterObjective`. Near prompt tokens count more."""

    key = "prompts"

    def wrong(self, seen: FollowingRows) -> torch.Tensor:
        with mixed_precision(seen.student.device):
            known = self._teacher.head(seen.teacher[seen.valid]).float().log_softmax(-1)
            guessed = self._teacher.head(seen.student[seen.valid]).float().log_softmax(-1)
        apart = (known.exp() * (known - guessed)).sum(-1)
        weights = (_FADE**seen.distances)[seen.valid]
        return (weights * apart).sum() / weights.sum().clamp(min=1.0)


KIND = DrafterSpec(
    "ppd",
    "prompt tokens: the target itself guesses behind them",
    Schedule(steps=400, texts=2, longest=512, rate=1e-2, warm_up=0.0),
    {"prompts": 3, "points": 24},
    PromptObjective.begin,
)
