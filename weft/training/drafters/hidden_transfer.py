"""Training of hidden transfer's maps (arXiv 2404.12022) towards the target's own distribution.

A row that enters a layer as a map of an earlier token's state should have the target's distribution
at the row's position after the true tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import torch
from torch.nn.functional import kl_div

from weft.core.errors import InputError
from weft.decoding.speculative.drafters.trained.hidden_transfer import HiddenTransferMaps
from weft.training.corpus import Corpus, TokenBatch
from weft.training.devices import mixed_precision
from weft.training.drafters.spec import DrafterSpec, TrainedWeights
from weft.training.frame import Schedule
from weft.training.teacher import AnchorRows, LayerwiseTeacher, Teacher, at, draw_anchors

_MEASURED: Final = (4, 512, 16)
"""Texts at once, tokens of each, places in each."""


class HiddenTransferObjective:
    """Trains `offsets` maps of inputs of `layer`, at `places` of every text."""

    def __init__(self, teacher: Teacher, layer: int, offsets: int, places: int) -> None:
        if not layer < teacher.layers:
            raise InputError(f"the model has no layer {layer}", hint=f"0 to {teacher.layers - 1}")
        self.module = HiddenTransferMaps(offsets, teacher.width).to(teacher.model.device)
        self._teacher = teacher
        self._midway = LayerwiseTeacher(teacher)
        self._layer = layer
        self._places = places

    def loss(self, batch: TokenBatch, rng: np.random.Generator) -> torch.Tensor:
        places = draw_anchors(batch, self.module.offsets, self._places, rng)
        guessed, goal = self._log_probabilities(batch, places)
        apart = kl_div(guessed, goal, reduction="none", log_target=True).sum(-1)
        learnt = places.drawn.repeat_interleave(self.module.offsets, dim=1)
        return (apart * learnt).sum() / learnt.sum().clamp(min=1)

    def made(self, held_out: Corpus) -> TrainedWeights:
        """The maps, with the accuracy of the likeliest guess, by offset."""
        right = torch.zeros(self.module.offsets)
        count = 0
        texts, longest, places_each = _MEASURED
        rng = np.random.default_rng(0)
        for batch in held_out.in_batches(texts, longest):
            places = draw_anchors(batch, self.module.offsets, places_each, rng)
            guessed, goal = self._log_probabilities(batch, places)
            hits = (guessed.argmax(-1) == goal.argmax(-1)).unflatten(1, (-1, self.module.offsets))
            right += hits[places.drawn].sum(0).cpu()
            count += int(places.drawn.sum())
        accuracy = [round(float(share), 4) for share in right / max(count, 1)]
        settings = {
            "layer": self._layer,
            "offsets": self.module.offsets,
            "held_out_accuracy": accuracy,
        }
        return TrainedWeights(settings, {"maps": self.module.maps.detach().half()})

    def _log_probabilities(
        self, batch: TokenBatch, places: AnchorRows
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Of the rows, and of the target at their positions: [texts, rows, vocabulary]."""
        with mixed_precision(places.anchors.device):
            past, states = self._midway.read(batch, (self._layer,))
            moved = self.module(at(states[self._layer], places.anchors).flatten(0, 1))
            rows = moved.unflatten(0, places.anchors.shape).flatten(1, 2)
            made = self._midway.onwards(past, rows, places, self._layer)
            with torch.no_grad():
                goal = self._teacher.head(at(past.hidden, places.positions))
            return self._teacher.head(made).log_softmax(-1), goal.log_softmax(-1)


def _begin(
    teacher: Teacher, _corpus: Corpus, settings: Mapping[str, int], _seed: int
) -> HiddenTransferObjective:
    return HiddenTransferObjective(
        teacher,
        layer=round(teacher.layers * settings["layer_percent"] / 100),
        offsets=settings["offsets"],
        places=settings["places"],
    )


KIND = DrafterSpec(
    "hidden_transfer",
    "linear maps that stand in for the states of positions to come",
    Schedule(steps=400, texts=2, longest=512, rate=1e-3),
    {"layer_percent": 67, "offsets": 3, "places": 40},
    _begin,
)
