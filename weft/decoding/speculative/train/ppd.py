"""Training of PPD's prompt tokens (arXiv 2405.18628): their embeddings only, the target is frozen.

Each learns the target's own law of the token that far ahead: KL, fading with the distance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import torch

from weft.decoding.speculative.train.accuracy import Accuracy
from weft.decoding.speculative.train.corpus import Batch, Corpus
from weft.decoding.speculative.train.following import first_rows, follow
from weft.decoding.speculative.train.kind import Kind, Made
from weft.decoding.speculative.train.teacher import Teacher
from weft.decoding.train.frame import Schedule
from weft.decoding.train.precision import sparing

RANKS: Final = 10
_FADE: Final = 0.8
_MEASURED_TEXTS: Final = 4
_LONGEST: Final = 1024


class Rows(torch.nn.Module):  # type: ignore[misc]
    """Rows that the target reads in the place of embeddings: [distances, width]."""

    def __init__(self, rows: torch.nn.Parameter) -> None:
        super().__init__()
        self.rows = rows


class PromptCourse:
    """Implements `Course`. `points` of each text have the prompt tokens behind them at a step."""

    def __init__(self, teacher: Teacher, rows: torch.nn.Parameter, points: int) -> None:
        self.module = Rows(rows)
        self._teacher = teacher
        self._points = points

    def loss(self, batch: Batch, chance: np.random.Generator) -> torch.Tensor:
        rows = self.module.rows
        seen = follow(self._teacher, rows, batch, self._points, chance)
        with sparing(rows.device):
            known = self._teacher.head(seen.teacher[seen.valid]).float().log_softmax(-1)
            guessed = self._teacher.head(seen.student[seen.valid]).float().log_softmax(-1)
        apart = (known.exp() * (known - guessed)).sum(-1)
        weights = (_FADE ** _distances(seen.valid, len(rows)))[seen.valid]
        return (weights * apart).sum() / weights.sum().clamp(min=1.0)

    def made(self, held_out: Corpus) -> Made:
        rows = self.module.rows
        table = measured(self._teacher, rows, held_out, self._points)
        settings = {"prompts": len(rows), "accuracy": table}
        return Made(settings, {"prompts": rows.detach().half()})


def measured(
    teacher: Teacher, rows: torch.Tensor, held_out: Corpus, points: int
) -> list[list[float]]:
    """By distance and rank: how often the text went on with that guess."""
    accuracy, chance = Accuracy(len(rows), RANKS), np.random.default_rng(0)
    for batch in held_out.in_batches(_MEASURED_TEXTS, _LONGEST):
        seen = follow(teacher, rows, batch, points, chance)
        distance = _distances(seen.valid, len(rows))
        for number in range(len(rows)):
            chosen = seen.valid & (distance == number)
            accuracy.add(number, teacher.head(seen.student[chosen]), seen.wanted[chosen])
    return accuracy.table()


def _distances(like: torch.Tensor, distances: int) -> torch.Tensor:
    """[texts, points * distances]: which learnt row stands there."""
    row = torch.arange(distances, device=like.device).repeat(like.shape[1] // distances)
    return row.expand(like.shape)


def _begin(
    teacher: Teacher, corpus: Corpus, settings: Mapping[str, int], seed: int
) -> PromptCourse:
    rows = first_rows(teacher, corpus, settings["prompts"], seed)
    return PromptCourse(teacher, rows, settings["points"])


KIND = Kind(
    "ppd",
    "prompt tokens: the target itself guesses behind them",
    Schedule(steps=400, texts=2, longest=512, rate=1e-2, warm_up=0.0),
    {"prompts": 3, "points": 24},
    _begin,
)
