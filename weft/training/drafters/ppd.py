"""Training of PPD's prompt tokens (arXiv 2405.18628): their embeddings only, the target is frozen.

Each learns the target's own law of the token that far ahead: KL, fading with the distance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import torch

from weft.training.corpus import Corpus, TokenBatch
from weft.training.devices import mixed_precision
from weft.training.drafters.learned_rows import RankAccuracy, first_rows, read_following
from weft.training.drafters.spec import DrafterSpec, TrainedWeights
from weft.training.frame import Schedule
from weft.training.teacher import Teacher

RANKS: Final = 10
_FADE: Final = 0.8
_MEASURED_TEXTS: Final = 4
_LONGEST: Final = 1024


class LearnedRows(torch.nn.Module):  # type: ignore[misc]
    """Rows that the target reads in the place of embeddings: [distances, width]."""

    def __init__(self, rows: torch.nn.Parameter) -> None:
        super().__init__()
        self.rows = rows


class PromptObjective:
    """Implements `Course`. `points` of each text have the prompt tokens behind them at a step."""

    def __init__(self, teacher: Teacher, rows: torch.nn.Parameter, points: int) -> None:
        self.module = LearnedRows(rows)
        self._teacher = teacher
        self._points = points

    def loss(self, batch: TokenBatch, chance: np.random.Generator) -> torch.Tensor:
        rows = self.module.rows
        seen = read_following(self._teacher, rows, batch, self._points, chance)
        with mixed_precision(rows.device):
            known = self._teacher.head(seen.teacher[seen.valid]).float().log_softmax(-1)
            guessed = self._teacher.head(seen.student[seen.valid]).float().log_softmax(-1)
        apart = (known.exp() * (known - guessed)).sum(-1)
        weights = (_FADE ** _distances(seen.valid, len(rows)))[seen.valid]
        return (weights * apart).sum() / weights.sum().clamp(min=1.0)

    def made(self, held_out: Corpus) -> TrainedWeights:
        rows = self.module.rows
        table = measured(self._teacher, rows, held_out, self._points)
        settings = {"prompts": len(rows), "accuracy": table}
        return TrainedWeights(settings, {"prompts": rows.detach().half()})


def measured(
    teacher: Teacher, rows: torch.Tensor, held_out: Corpus, points: int
) -> list[list[float]]:
    """By distance and rank: how often the text went on with that guess."""
    accuracy, chance = RankAccuracy(len(rows), RANKS), np.random.default_rng(0)
    for batch in held_out.in_batches(_MEASURED_TEXTS, _LONGEST):
        seen = read_following(teacher, rows, batch, points, chance)
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
) -> PromptObjective:
    rows = first_rows(teacher, corpus, settings["prompts"], seed)
    return PromptObjective(teacher, rows, settings["points"])


KIND = DrafterSpec(
    "ppd",
    "prompt tokens: the target itself guesses behind them",
    Schedule(steps=400, texts=2, longest=512, rate=1e-2, warm_up=0.0),
    {"prompts": 3, "points": 24},
    _begin,
)
