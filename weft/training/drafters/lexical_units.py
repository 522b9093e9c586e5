"""Training of placeholders for Lexical Unit Decoding (arXiv 2405.15208).

The authors tune the whole model. Here the model is frozen: trained are an embedding for each
placeholder and, for placeholders' rows only, a low-rank correction before each layer (see
`LexicalPlaceholders`), so that texts are computed as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import torch

from weft.core.errors import InputError
from weft.decoding.speculative.drafters.trained.lexical_units import LexicalPlaceholders
from weft.training.corpus import Corpus, TokenBatch
from weft.training.devices import mixed_precision
from weft.training.drafters.spec import DrafterSpec, TrainedWeights
from weft.training.frame import Schedule
from weft.training.teacher import (
    AnchorRows,
    LayerwiseTeacher,
    Teacher,
    TeacherCache,
    at,
    draw_anchors,
)

_MEASURED: Final = (4, 512, 16)
"""Texts at once, tokens of each, places in each."""
_OUTSIDE: Final = 0.25
"""Weight of tokens outside of the unit, so that placeholders learn to be unsure of them."""


class LexicalUnitsObjective:
    """Trains placeholders on units: runs of tokens with a probability above `alpha`."""

    def __init__(
        self, teacher: Teacher, module: LexicalPlaceholders, alpha: float, places: int
    ) -> None:
        if not module.layers:
            raise InputError("no layer is left to correct", hint="a lower first_layer")
        self.module = module.to(teacher.model.device)
        self._teacher = teacher
        self._midway = LayerwiseTeacher(teacher)
        self._alpha = alpha
        self._places = places

    def loss(self, batch: TokenBatch, rng: np.random.Generator) -> torch.Tensor:
        places = self._anchors(batch, rng)
        with mixed_precision(places.anchors.device):
            past, _ = self._midway.read(batch)
            inside = self._inside(batch, past, places)
            logs, labels = self._guessed(batch, past, places)
        wrong = -logs.gather(-1, labels[..., None])[..., 0].unflatten(1, (-1, places.ahead))
        weights = torch.where(inside, 1.0, _OUTSIDE) * places.drawn[..., None]
        return (wrong * weights).sum() / weights.sum().clamp(min=1e-6)

    def made(self, held_out: Corpus) -> TrainedWeights:
        """The placeholders, with the accuracy of each, and the share of units that reach it."""
        right, inside = torch.zeros(2, self.module.count)
        count = 0
        texts, longest, _ = _MEASURED
        rng = np.random.default_rng(0)
        for batch in held_out.in_batches(texts, longest):
            places = self._anchors(batch, rng)
            with mixed_precision(places.anchors.device):
                past, _ = self._midway.read(batch)
                units = self._inside(batch, past, places)
                logs, labels = self._guessed(batch, past, places)
            hits = (logs.argmax(-1) == labels).unflatten(1, (-1, places.ahead))
            right += hits[places.drawn].sum(0).cpu()
            inside += units[places.drawn].sum(0).cpu()
            count += int(places.drawn.sum())
        settings = {
            "placeholders": self.module.count,
            "rank": self.module.down.shape[1],
            "first_layer": self.module.layers[0],
            "alpha": self._alpha,
            "held_out_accuracy": [round(float(share), 4) for share in right / max(count, 1)],
            "held_out_in_unit": [round(float(share), 4) for share in inside / max(count, 1)],
        }
        tensors = {name: value.half() for name, value in self.module.state_dict().items()}
        return TrainedWeights(settings, tensors)

    def _anchors(self, batch: TokenBatch, rng: np.random.Generator) -> AnchorRows:
        # the last placeholder is before the last guessed token
        anchors = draw_anchors(batch, self.module.count + 1, self._places, rng)
        return AnchorRows(anchors.anchors, anchors.drawn, self.module.count)

    def _inside(self, batch: TokenBatch, past: TeacherCache, places: AnchorRows) -> torch.Tensor:
        """[texts, places, placeholders]: whether its token belongs to the unit."""
        with torch.no_grad():
            steps = torch.arange(places.ahead + 1, device=places.anchors.device)
            positions = (places.anchors[..., None] + steps).flatten(1)
            distributions = self._teacher.head(at(past.hidden, positions)).softmax(-1)
            true = distributions.gather(-1, batch.tokens.gather(1, positions + 1)[..., None])[
                ..., 0
            ]
            sure = (true > self._alpha).unflatten(1, (-1, places.ahead + 1))
            return sure.cumprod(-1)[..., 1:].bool()

    def _guessed(
        self, batch: TokenBatch, past: TeacherCache, places: AnchorRows
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log probabilities of the placeholders, [texts, rows, vocabulary], and the true tokens."""
        texts, count = places.anchors.shape
        rows = self.module.rows.repeat(count, 1).expand(texts, -1, -1)
        hidden = self._midway.onwards(past, rows, places, entering=self._corrected)
        labels = batch.tokens.gather(1, places.positions + 1)
        return self._teacher.head(hidden).log_softmax(-1), labels

    def _corrected(self, layer: int, states: torch.Tensor) -> torch.Tensor:
        if layer < self.module.layers[0]:
            return states
        return self.module.corrected(layer - self.module.layers[0], states)


def _begin(
    teacher: Teacher, _corpus: Corpus, settings: Mapping[str, int], seed: int
) -> LexicalUnitsObjective:
    torch.manual_seed(seed)
    layers = tuple(range(settings["first_layer"], teacher.layers))
    like = teacher.embed([settings["like_token"]])[0]
    module = LexicalPlaceholders(settings["placeholders"], layers, settings["rank"], like)
    return LexicalUnitsObjective(
        teacher, module, settings["alpha_percent"] / 100, settings["places"]
    )


KIND = DrafterSpec(
    "lexical_units",
    "placeholders that guess what follows within a unit of sure tokens",
    Schedule(steps=400, texts=2, longest=512, rate=2e-3),
    {
        "placeholders": 3,
        "rank": 16,
        "first_layer": 1,
        "alpha_percent": 80,
        "places": 32,
        "like_token": 2,
    },
    _begin,
)
