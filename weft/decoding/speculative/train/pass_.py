"""Training of PaSS's look-ahead tokens (arXiv 2311.13581): cross-entropy on the text's own tokens.

Their embeddings only; the target is frozen.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from weft.decoding.speculative.train.corpus import Batch, Corpus
from weft.decoding.speculative.train.following import first_rows, follow
from weft.decoding.speculative.train.kind import Kind, Made
from weft.decoding.speculative.train.ppd import Rows, measured
from weft.decoding.speculative.train.teacher import Teacher
from weft.decoding.train.frame import Schedule
from weft.decoding.train.precision import sparing


class AheadCourse:
    """Implements `Course`. All distances count alike."""

    def __init__(self, teacher: Teacher, rows: torch.nn.Parameter, points: int) -> None:
        self.module = Rows(rows)
        self._teacher = teacher
        self._points = points

    def loss(self, batch: Batch, chance: np.random.Generator) -> torch.Tensor:
        seen = follow(self._teacher, self.module.rows, batch, self._points, chance)
        with sparing(seen.student.device):
            logits = self._teacher.head(seen.student[seen.valid]).float()
        wanted = seen.wanted[seen.valid]
        return torch.nn.functional.cross_entropy(logits, wanted, reduction="sum") / max(
            len(wanted), 1
        )

    def made(self, held_out: Corpus) -> Made:
        rows = self.module.rows
        table = measured(self._teacher, rows, held_out, self._points)
        return Made({"ahead": len(rows), "accuracy": table}, {"ahead": rows.detach().half()})


def _begin(teacher: Teacher, corpus: Corpus, settings: Mapping[str, int], seed: int) -> AheadCourse:
    rows = first_rows(teacher, corpus, settings["ahead"], seed)
    return AheadCourse(teacher, rows, settings["points"])


KIND = Kind(
    "pass",
    "look-ahead tokens: the target itself guesses behind them, a chain at a time",
    Schedule(steps=400, texts=2, longest=512, rate=1e-2, warm_up=0.0),
    {"ahead": 4, "points": 24},
    _begin,
)
