"""Training of a DFlash network on the features of a frozen target (arXiv 2602.06036).

Blocks begin at many positions of a text at once. The goal of a slot is the target's distribution at
its position, over the draft vocabulary; near slots have larger weights, because far ones are only
reached through them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from weft.core.errors import InputError
from weft.decoding.speculative.drafters.trained.feature_layers import (
    DFlash,
    DFlashAttend,
    DFlashShape,
    LayerVariant,
)
from weft.training.corpus import Corpus, TokenBatch
from weft.training.devices import mixed_precision
from weft.training.drafters.features import (
    FeatureObjective,
    draft_vocabulary,
    form_of,
    layer_sizes,
    soft_cross_entropy,
)
from weft.training.drafters.spec import DrafterSpec, TrainedWeights
from weft.training.frame import Schedule
from weft.training.teacher import Teacher

_FALLING: Final = 0.8
"""Weight of a slot relative to the one before."""
_MEASURED: Final = (4, 512, 64)
"""Texts at once, tokens of each, blocks in each."""
_TAPS: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class BlockGuesses:
    """Predictions of the blocks of one text.

    logits, goals  [blocks, block - 1, draft vocabulary]
    tokens         [blocks, block - 1]: the true ones; `learnt`: whether they are trained
    """

    logits: torch.Tensor
    goals: torch.Tensor
    tokens: torch.Tensor
    learnt: torch.Tensor


class DFlashObjective(FeatureObjective[DFlash]):
    """Implements `DrafterObjective`: trains on blocks at `places` of a text."""

    def __init__(
        self,
        teacher: Teacher,
        module: DFlash,
        taps: tuple[int, ...],
        tokens: torch.Tensor,
        places: int,
    ) -> None:
        super().__init__(teacher, module, taps, tokens)
        self._places = places

    def loss(self, batch: TokenBatch, rng: np.random.Generator) -> torch.Tensor:
        falling = _FALLING ** torch.arange(self.module.shape.block - 1, device=self._tokens.device)
        wrong = torch.zeros((), device=self._tokens.device)
        total = torch.zeros((), device=self._tokens.device)
        with mixed_precision(self._tokens.device):
            for guessed in self._guessed(batch, self._places, rng):
                weights = guessed.learnt * falling
                losses = soft_cross_entropy(guessed.goals, guessed.logits)
                wrong = wrong + (losses * weights).sum()
                total = total + weights.sum()
        # without a text that is long enough, the loss and its gradients are zero
        return wrong / total.clamp(min=1.0) + 0.0 * self.module.mask.sum()

    def made(self, held_out: Corpus) -> TrainedWeights:
        """The weights, with the accuracy of chains of each length."""
        right = torch.zeros(self.module.shape.block - 1)
        blocks = 0
        texts, longest, places = _MEASURED
        rng = np.random.default_rng(0)
        for batch in held_out.in_batches(texts, longest):
            with mixed_precision(self._tokens.device):
                for guessed in self._guessed(batch, places, rng):
                    hits = (self._tokens[guessed.logits.argmax(-1)] == guessed.tokens).int()
                    right += hits.cumprod(-1).sum(0).cpu()
                    blocks += len(hits)
        form = 2 if self.module.shape.variant.head_norms else 1
        return self.weights(right / max(blocks, 1), form)

    def _guessed(
        self, batch: TokenBatch, places: int, rng: np.random.Generator
    ) -> Iterator[BlockGuesses]:
        """For every text in which a block fits into the answer."""
        states = self._teacher.states(batch, {*self._taps, self._teacher.layers})
        ahead = self.module.shape.block - 1
        ends, answers = batch.there.sum(1).tolist(), batch.answered.int().argmax(1).tolist()
        begun = batch.answered.any(1).tolist()
        for text, (end, answer) in enumerate(zip(ends, answers, strict=True)):
            fitting = np.arange(max(answer - 1, 1), end - ahead)
            if begun[text] and len(fitting):
                some = min(places, len(fitting))
                at = torch.from_numpy(rng.choice(fitting, some, replace=False))
                yield self._of(batch.tokens[text], at, states, text)

    def _of(
        self, tokens: torch.Tensor, at: torch.Tensor, states: Mapping[int, torch.Tensor], text: int
    ) -> BlockGuesses:
        """Blocks after the tokens at `at` [blocks], which see the features before them."""
        device, block = self._tokens.device, self.module.shape.block
        time = int(at.max())
        features = torch.cat([states[tap][text, :time] for tap in self._taps], dim=-1)
        remembered = self.module.remembered(
            features, self.module.shape.rotation(torch.arange(time, device=device))
        )
        positions = at[:, None] + torch.arange(block)
        attend = _attend(remembered, at, block)
        turns = self.module.shape.rotation(positions.flatten().to(device))
        embedded = self._teacher.embed(tokens[at].tolist())
        logits = self._teacher.head(self.module(embedded, turns, attend), self._tokens)
        final = states[self._teacher.layers][text]
        with torch.no_grad():
            goals = self._teacher.head(final[positions[:, :-1].to(device)], self._tokens)
        wanted = tokens[positions[:, 1:]].to(device)
        return BlockGuesses(logits, goals, wanted, self._drafted[wanted])


def _attend(
    remembered: list[tuple[torch.Tensor, torch.Tensor]], at: torch.Tensor, block: int
) -> DFlashAttend:
    """A block sees all features before its own, and all of itself."""
    time = remembered[0][0].shape[1]
    before = torch.arange(time) < at[:, None]  # [blocks, time]
    own = torch.eye(len(at), dtype=torch.bool).repeat_interleave(block, dim=1)
    sees = torch.cat([before, own], dim=1).repeat_interleave(block, dim=0)
    sees = sees.to(remembered[0][0].device)

    def attend(
        layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> torch.Tensor:
        keys, values = remembered[layer]
        repeats = len(query) // len(key)
        all_keys = torch.cat([keys.to(key.dtype), key], dim=1).repeat_interleave(repeats, dim=0)
        all_values = torch.cat([values.to(value.dtype), value], dim=1)
        attended: torch.Tensor = scaled_dot_product_attention(
            query, all_keys, all_values.repeat_interleave(repeats, dim=0), sees
        )
        return attended

    return attend


def _begin(
    teacher: Teacher, corpus: Corpus, settings: Mapping[str, int], seed: int
) -> DFlashObjective:
    taps = spread_taps(teacher.layers, _TAPS)
    try:
        sizes = layer_sizes(teacher, taps, settings["inner"])
        variant = LayerVariant(head_norms=form_of(settings) == 2)
        shape = DFlashShape(
            block=settings["block"], layers=settings["layers"], **sizes, variant=variant
        )
    except ValueError as error:
        raise InputError(f"no network can be trained for this model: {error}") from error
    torch.manual_seed(seed)
    tokens = draft_vocabulary(teacher, corpus, settings)
    return DFlashObjective(teacher, DFlash(shape), taps, tokens, settings["places"])


def spread_taps(layers: int, count: int) -> tuple[int, ...]:
    """`count` evenly spaced layers from 1 to the third from the end; fewer of a small model."""
    last = max(layers - 3, 1)
    return tuple(sorted({round(float(at)) for at in np.linspace(1, last, count)}))


KIND = DrafterSpec(
    "dflash",
    "a small diffusion network that fills a block of tokens from the target's features",
    Schedule(steps=600, texts=4, longest=512, rate=1e-3),
    {"block": 8, "layers": 2, "inner": 640, "vocabulary": 4096, "places": 32, "form": 1},
    _begin,
)
