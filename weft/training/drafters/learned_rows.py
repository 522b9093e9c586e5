"""Learnt rows that the frozen target reads as embeddings, somewhere in a text: PPD's and PaSS's.

They follow there as they follow the last token of a draft. `RankAccuracy`, how often the guess of
each rank was right at each distance, is what trees of drafts are built from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from weft.training.corpus import Corpus, TokenBatch
from weft.training.devices import mixed_precision
from weft.training.drafters.spec import TrainedWeights
from weft.training.teacher import Teacher

RANKS: Final = 10
_MEASURED_TEXTS: Final = 4
_LONGEST: Final = 1024


class RankAccuracy:
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


_TYPICAL = 1024
_NOISE = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class FollowingRows:
    """What `distances` learnt rows after each of `points` tokens came to.

    Distances and points are laid out in a row, so row `point * distances + distance`.

    student  [texts, points * distances, width]: what the head reads, with gradients
    teacher  [texts, points * distances, width]: the same where the text's own tokens stand instead
    wanted   [texts, points * distances]: the text's token after that place
    valid    [texts, points * distances]: whether the text goes on so far
    """

    student: torch.Tensor
    teacher: torch.Tensor
    wanted: torch.Tensor
    valid: torch.Tensor
    count: int

    @property
    def distances(self) -> torch.Tensor:
        """[texts, points * distances]: which learnt row stands there, of `count`."""
        row = torch.arange(self.count, device=self.valid.device)
        return row.repeat(self.valid.shape[1] // self.count).expand(self.valid.shape)


def read_following(
    teacher: Teacher,
    rows: torch.Tensor,
    batch: TokenBatch,
    points: int,
    rng: np.random.Generator,
) -> FollowingRows:
    """Put `rows` [distances, width] after `points` random tokens of each answer, or of what comes
    right before it; every point by itself.
    """
    distances = len(rows)
    texts, time = batch.tokens.shape
    at = _points(batch, points, rng)  # [texts, points]
    places = (at[:, :, None] + 1 + torch.arange(distances)).flatten(1)
    chain = torch.tril(torch.ones(distances, distances, dtype=torch.bool))
    own = torch.block_diag(*[chain] * points).bool()
    before = torch.arange(time)[None, None] <= at.repeat_interleave(distances, 1)[:, :, None]
    sees = torch.cat([before, own.expand(texts, -1, -1)], dim=-1)
    places, sees = places.to(rows.device), sees.to(rows.device)
    embedded = rows.repeat(points, 1).expand(texts, -1, -1)
    with mixed_precision(rows.device):
        past = teacher.read(batch)
        student = teacher.onwards(past, embedded, places, sees)
    inside = places.clamp(max=time - 2)
    # the token of a place, and the one after it, which is what is guessed there
    valid = (places <= time - 2) & batch.there.gather(1, inside + 1)
    known = past.hidden.gather(1, inside[:, :, None].expand(-1, -1, rows.shape[1]))
    return FollowingRows(student, known, batch.tokens.gather(1, inside + 1), valid, distances)


def first_rows(teacher: Teacher, corpus: Corpus, distances: int, seed: int) -> torch.nn.Parameter:
    """[distances, width] to begin with: what the target reads on average, and a little noise."""
    common = corpus.frequent(min(_TYPICAL, teacher.vocabulary_size), teacher.vocabulary_size)
    embedded = teacher.embed(common.tolist())
    drawn = torch.randn(distances, teacher.width, generator=torch.Generator().manual_seed(seed))
    noise = drawn.to(embedded)
    return torch.nn.Parameter(embedded.mean(0) + _NOISE * embedded.std() * noise)


def _points(batch: TokenBatch, points: int, rng: np.random.Generator) -> torch.Tensor:
    """[texts, points]: places from the last of the prompt to the second last of the text."""
    drawn = []
    ends, answers = batch.there.sum(1).tolist(), batch.answered.sum(1).tolist()
    for end, answer in zip(ends, answers, strict=True):
        first = end - answer - 1
        choice = np.arange(max(first, 0), max(end - 1, first + 1, 1))
        drawn.append(np.sort(rng.choice(choice, points, replace=len(choice) < points)))
    return torch.from_numpy(np.stack(drawn))


class LearnedRows(torch.nn.Module):  # type: ignore[misc]
    """Rows that the target reads in the place of embeddings: [distances, width]."""

    def __init__(self, rows: torch.nn.Parameter) -> None:
        super().__init__()
        self.rows = rows


class RowsObjective(ABC):
    """Implements `DrafterObjective`: learns `rows` behind `points` of each text at a step.

    `key` names them among settings and weights; the target is frozen.
    """

    key: str

    def __init__(self, teacher: Teacher, rows: torch.nn.Parameter, points: int) -> None:
        self.module = LearnedRows(rows)
        self._teacher = teacher
        self._points = points

    @classmethod
    def begin(
        cls, teacher: Teacher, corpus: Corpus, settings: Mapping[str, int], seed: int
    ) -> RowsObjective:
        """See `DrafterSpec`."""
        return cls(
            teacher, first_rows(teacher, corpus, settings[cls.key], seed), settings["points"]
        )

    @abstractmethod
    def wrong(self, seen: FollowingRows) -> torch.Tensor:
        """How wrong the rows are, as one number."""

    def loss(self, batch: TokenBatch, rng: np.random.Generator) -> torch.Tensor:
        return self.wrong(read_following(self._teacher, self.module.rows, batch, self._points, rng))

    def made(self, held_out: Corpus) -> TrainedWeights:
        """With how often the text went on with each guess, by distance and rank."""
        rows = self.module.rows
        accuracy, rng = RankAccuracy(len(rows), RANKS), np.random.default_rng(0)
        for batch in held_out.in_batches(_MEASURED_TEXTS, _LONGEST):
            seen = read_following(self._teacher, rows, batch, self._points, rng)
            for number in range(len(rows)):
                chosen = seen.valid & (seen.distances == number)
                guessed = self._teacher.head(seen.student[chosen])
                accuracy.add(number, guessed, seen.wanted[chosen])
        settings = {self.key: len(rows), "accuracy": accuracy.table()}
        return TrainedWeights(settings, {self.key: rows.detach().half()})
