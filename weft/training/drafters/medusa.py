"""Training of Medusa's heads on a frozen target (Medusa-1, arXiv 2401.10774, section 2.2.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from weft.decoding.speculative.drafters.trained.medusa import MedusaHeads
from weft.training.corpus import Corpus, TokenBatch
from weft.training.devices import mixed_precision
from weft.training.drafters.features import form_of
from weft.training.drafters.learned_rows import RANKS, RankAccuracy
from weft.training.drafters.spec import DrafterSpec, TrainedWeights
from weft.training.frame import Schedule
from weft.training.teacher import Teacher, TeacherStates

_FADE: Final = 0.8
"""Weight of a head's loss relative to the head before."""
_MEASURED_TEXTS: Final = 4
_LONGEST: Final = 1024


class MedusaObjective:
    """Implements `DrafterObjective`. Head k is trained on the token k + 1 positions after the last
    read one.

    Only `tokens`, the most frequent of answers, are guessed; others are not trained on.
    """

    def __init__(self, teacher: Teacher, heads: int, tokens: torch.Tensor, form: int = 1) -> None:
        self.module = MedusaHeads(heads, teacher.width, form).to(teacher.device)
        self._teacher = teacher
        self._states = TeacherStates(teacher)
        self._tokens = tokens.to(teacher.device)
        self._number = torch.full((teacher.vocabulary_size,), -1, device=teacher.device)
        self._number[self._tokens] = torch.arange(len(tokens), device=teacher.device)

    def loss(self, batch: TokenBatch, rng: np.random.Generator) -> torch.Tensor:  # noqa: ARG002
        losses = []
        for head, logits, wanted in self._guesses(batch):
            wrong = cross_entropy(logits, wanted, ignore_index=-1, reduction="sum")
            losses.append(_FADE**head * wrong / (wanted >= 0).sum().clamp(min=1))
        return torch.stack(losses).sum() / sum(_FADE**head for head in range(len(losses)))

    def made(self, held_out: Corpus) -> TrainedWeights:
        heads = len(self.module.into)
        accuracy = RankAccuracy(heads, RANKS)
        for batch in held_out.in_batches(_MEASURED_TEXTS, _LONGEST):
            for head, logits, wanted in self._guesses(batch):
                accuracy.add(head, logits, wanted)
        weights = {name: value.half() for name, value in self.module.state_dict().items()}
        settings = {"heads": heads, "form": self.module.form, "accuracy": accuracy.table()}
        return TrainedWeights(settings, {**weights, "tokens": self._tokens.int()})

    def _guesses(self, batch: TokenBatch) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
        """By head: its logits [places, tokens], and the right ones [places], -1 for others."""
        with mixed_precision(self._tokens.device):
            hidden = self._states.of(batch)[self._teacher.layers]
        for head in range(len(self.module.into)):
            # the state of t predicts t + 1 in the target, and t + 2 + head in this head
            ahead = 2 + head
            there = batch.answered[:, 1:][:, : batch.tokens.shape[1] - ahead]
            fine = there & batch.answered[:, ahead:]
            states = hidden[:, : fine.shape[1]][fine]
            with mixed_precision(states.device):
                logits = self._teacher.head(self.module.one(head, states), self._tokens)
            yield head, logits.float(), self._number[batch.tokens[:, ahead:][fine]]


def _begin(
    teacher: Teacher, corpus: Corpus, settings: Mapping[str, int], seed: int
) -> MedusaObjective:
    torch.manual_seed(seed)
    count = min(settings["tokens"], teacher.vocabulary_size)
    tokens = corpus.frequent(count, teacher.vocabulary_size)
    return MedusaObjective(teacher, settings["heads"], tokens, form_of(settings))


KIND = DrafterSpec(
    "medusa",
    "heads that guess several tokens from one hidden state",
    Schedule(steps=1000, texts=4, longest=512, rate=1e-3, warm_up=0.1),
    {"heads": 4, "tokens": 8192, "form": 1},
    _begin,
)
