"""Training of PaSS's look-ahead tokens (arXiv 2311.13581): cross-entropy on the text's own tokens.

Their embeddings only; the target is frozen.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from weft.training.corpus import Corpus, TokenBatch
from weft.training.devices import mixed_precision
from weft.training.drafters.learned_rows import first_rows, read_following
from weft.training.drafters.ppd import LearnedRows, measured
from weft.training.drafters.spec import DrafterSpec, TrainedWeights
from weft.training.frame import Schedule
from weft.training.teacher import Teacher


class PassObjective:
    """Implements `Course`. All distances count alike."""

    def __init__(self, teacher: Teacher, rows: torch.nn.Parameter, points: int) -> None:
        self.module = LearnedRows(rows)
        self._teacher = teacher
        self._points = points

    def loss(self, batch: TokenBatch, chance: np.random.Generator) -> torch.Tensor:
        seen = read_following(self._teacher, self.module.rows, batch, self._points, chance)
        with mixed_precision(seen.student.device):
            logits = self._teacher.head(seen.student[seen.valid]).float()
        wanted = seen.wanted[seen.valid]
        return torch.nn.functional.cross_entropy(logits, wanted, reduction="sum") / max(
            len(wanted), 1
        )

    def made(self, held_out: Corpus) -> TrainedWeights:
        rows = self.module.rows
        table = measured(self._teacher, rows, held_out, self._points)
        return TrainedWeights(
            {"ahead": len(rows), "accuracy": table}, {"ahead": rows.detach().half()}
        )


def _begin(
    teacher: Teacher, corpus: Corpus, settings: Mapping[str, int], seed: int
) -> PassObjective:
    rows = first_rows(teacher, corpus, settings["ahead"], seed)
    return PassObjective(teacher, rows, settings["points"])


KIND = DrafterSpec(
    "pass",
    "look-ahead tokens: the target itself guesses behind them, a chain at a time",
    Schedule(steps=400, texts=2, longest=512, rate=1e-2, warm_up=0.0),
    {"ahead": 4, "points": 24},
    _begin,
)
