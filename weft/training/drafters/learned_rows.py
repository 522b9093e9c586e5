"""Trained input rows of a frozen target, as in PPD and PaSS, read after positions of a text.

`RankAccuracy`, how often the guess of each rank was right at each distance, shapes draft trees.
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
    """Accuracy of guesses by distance, of the first `ranks`."""

    def __init__(self, distances: int, ranks: int) -> None:
        self._right = torch.zeros(distances, ranks, dtype=torch.int64)
        self._all = torch.zeros(distances, 1, dtype=torch.int64)

    def add(self, distance: int, logits: torch.Tensor, wanted: torch.Tensor) -> None:
        """logits: [guesses, tokens]; wanted: [guesses], index of the right token; -1: none."""
        self._all[distance] += len(wanted)
        present = wanted >= 0
        logits, wanted = logits[present], wanted[present]
        above = (logits > logits.gather(1, wanted[:, None])).sum(1)
        ranks = self._right.shape[1]
        self._right[distance] += torch.bincount(above[above < ranks], minlength=ranks).cpu()

    def table(self) -> list[list[float]]:
        """[distances][ranks]: accuracy."""
        shares = self._right / self._all.clamp(min=1)
        return [[round(share, 5) for share in row] for row in shares.tolist()]


_TYPICAL = 1024
_NOISE = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class FollowingRows:
    """States of `distances` trained rows after each of `points` tokens.

    Points and distances share a dimension: row `point * distances + distance`.

    student  [texts, points * distances, width]: inputs of the head, with gradients
    teacher  [texts, points * distances, width]: the same after the text's own tokens
    wanted   [texts, points * distances]: the text's token after that position
    valid    [texts, points * distances]: whether the text is long enough
    """

    student: torch.Tensor
    teacher: torch.Tensor
    wanted: torch.Tensor
    valid: torch.Tensor
    count: int

    @property
    def distances(self) -> torch.Tensor:
        """[texts, points * distances]: the index of the trained row, of `count`."""
        row = torch.arange(self.count, device=self.valid.device)
        return row.repeat(self.valid.shape[1] // self.count).expand(self.valid.shape)


def read_following(
    teacher: Teacher,
    rows: torch.Tensor,
    batch: TokenBatch,
    points: int,
    rng: np.random.Generator,
) -> FollowingRows:
    """Read `rows` [distances, width] after `points` random tokens of each answer, or the last of
    its prompt; points do not see each other.
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
    # the goal is the token after the position
    valid = (places <= time - 2) & batch.there.gather(1, inside + 1)
    teacher_states = past.hidden.gather(1, inside[:, :, None].expand(-1, -1, rows.shape[1]))
    wanted = batch.tokens.gather(1, inside + 1)
    return FollowingRows(student, teacher_states, wanted, valid, distances)


def first_rows(teacher: Teacher, corpus: Corpus, distances: int, seed: int) -> torch.nn.Parameter:
    """Initial rows [distances, width]: the mean of frequent embeddings, with noise."""
    common = corpus.frequent(min(_TYPICAL, teacher.vocabulary_size), teacher.vocabulary_size)
    embedded = teacher.embed(common.tolist())
    random = torch.randn(distances, teacher.width, generator=torch.Generator().manual_seed(seed))
    noise = random.to(embedded)
    return torch.nn.Parameter(embedded.mean(0) + _NOISE * embedded.std() * noise)


def _points(batch: TokenBatch, points: int, rng: np.random.Generator) -> torch.Tensor:
    """[texts, points]: positions from the prompt's last token to the last but one of the text."""
    points_of = []
    ends, answers = batch.there.sum(1).tolist(), batch.answered.sum(1).tolist()
    for end, answer in zip(ends, answers, strict=True):
        first = end - answer - 1
        choice = np.arange(max(first, 0), max(end - 1, first + 1, 1))
        points_of.append(np.sort(rng.choice(choice, points, replace=len(choice) < points)))
    return torch.from_numpy(np.stack(points_of))


class LearnedRows(torch.nn.Module):  # type: ignore[misc]
    """Rows that replace embeddings of the target: [distances, width]."""

    def __init__(self, rows: torch.nn.Parameter) -> None:
        super().__init__()
        self.rows = rows


class RowsObjective(ABC):
    """Implements `DrafterObjective`: trains `rows` after `points` of each text in a step.

    `key` is their name in settings and weights; the target is frozen.
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
    def rows_loss(self, rows: FollowingRows) -> torch.Tensor:
        """The loss of the rows."""

    def loss(self, batch: TokenBatch, rng: np.random.Generator) -> torch.Tensor:
        rows = read_following(self._teacher, self.module.rows, batch, self._points, rng)
        return self.rows_loss(rows)

    def made(self, held_out: Corpus) -> TrainedWeights:
        """The rows, with the accuracy of guesses by distance and rank."""
        rows = self.module.rows
        accuracy, rng = RankAccuracy(len(rows), RANKS), np.random.default_rng(0)
        for batch in held_out.in_batches(_MEASURED_TEXTS, _LONGEST):
            following = read_following(self._teacher, rows, batch, self._points, rng)
            for number in range(len(rows)):
                chosen = following.valid & (following.distances == number)
                guessed = self._teacher.head(following.student[chosen])
                accuracy.add(number, guessed, following.wanted[chosen])
        settings = {self.key: len(rows), "accuracy": accuracy.table()}
        return TrainedWeights(settings, {self.key: rows.detach().half()})
