"""Uniform-state denoising: every pass writes all slots, and none is final until the text converges.

For models whose undecided slots contain noise, and masked models, whose slots are masked again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Bits, Canvas, Slots
from weft.decoding.diffusion.policies.ranking import at_step
from weft.decoding.diffusion.ports import Need
from weft.decoding.diffusion.query import SoftSlots
from weft.decoding.diffusion.stats import SampledTokens, Stats
from weft.decoding.sampling import CounterRng, TokenRng


@dataclass(frozen=True, slots=True)
class UniformStatePolicy:
    """Denoising from uniform noise with entropy-bounded acceptance (DiffusionGemma).

    At every pass logits are divided by a temperature that falls from `first` to `last`. Slots are
    sorted by entropy, and the largest prefix in which the entropies before a slot sum to at most
    `bound` nats is accepted: those keep their tokens in the next pass, the others become noise. It
    ends when the likeliest tokens did not change for `still` passes and the mean entropy is below
    `calm`, or after `steps` passes.

    `parts`: an open slot is read in the next pass as a mixture of so many likeliest tokens
    (self-conditioning); None: as one token.
    """

    steps: int = 48
    first: float = 0.8
    last: float = 0.4
    bound: float = 0.1
    still: int = 1
    calm: float = 0.005
    parts: int | None = None

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset() if self.parts is None else frozenset({"distribution"})

    def begin(self, canvas: Canvas, traits: ModelTraits) -> _UniformStateSession:
        return _UniformStateSession(self, canvas, traits)

    def most_forwards(self, _slots: int) -> int:
        return self.steps


class _UniformStateSession:
    def __init__(self, settings: UniformStatePolicy, canvas: Canvas, traits: ModelTraits) -> None:
        self._settings, self._mask = settings, traits.mask_id
        allowed = np.ones(traits.vocabulary, dtype=np.bool_)
        allowed[sorted(traits.banned)] = False
        self._uniform = allowed / allowed.sum()
        self._likeliest: NDArray[np.int64] | None = None
        self._calm = 0
        slots = np.flatnonzero(canvas.undecided)
        # the first noise is the same for all rows: their generator serves predictions only
        canvas.renoise(slots, self._noise(slots, canvas, CounterRng(0), step=0))

    def adjust(
        self, logits: NDArray[np.float32], _slots: Slots, canvas: Canvas
    ) -> NDArray[np.float32]:
        settings = self._settings
        share = min(1.0, canvas.step_in_block / max(1, settings.steps - 1))
        return logits / np.float32(settings.first + (settings.last - settings.first) * share)

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        settings, slots = self._settings, stats.slots[stats.open]
        likeliest = stats.top_ids[stats.open, 0]
        before, self._likeliest = self._likeliest, likeliest
        if canvas.step_in_block == 0 or before is None or len(before) != len(likeliest):
            self._calm = 0
        else:
            self._calm = self._calm + 1 if (before == likeliest).all() else 0
        calm = self._calm >= settings.still and stats.entropy[stats.open].mean() < settings.calm
        if calm or canvas.step_in_block + 1 >= settings.steps:
            return Action(commit=SlotTokens.of(slots, likeliest))
        accepted = self._accepted(stats.entropy[stats.open])
        ids = np.where(accepted, drawn.ids[stats.open], self._noise(slots, canvas, drawn.rng))
        return Action(renoise=SlotTokens.of(slots, ids), soft=self._soft(stats), again=True)

    def _accepted(self, entropy: NDArray[np.float64]) -> Bits:
        order = np.argsort(entropy, kind="stable")
        before = np.concatenate([[0.0], entropy[order].cumsum()[:-1]])
        accepted = np.zeros(len(entropy), dtype=np.bool_)
        accepted[order] = before <= self._settings.bound
        return accepted

    def _noise(
        self, slots: Slots, canvas: Canvas, rng: TokenRng, step: int = 1
    ) -> NDArray[np.int64]:
        if self._mask is not None:
            return np.full(len(slots), self._mask, dtype=np.int64)
        at = at_step(canvas.step + step) - canvas.first
        return np.array([rng.token(self._uniform, at + int(n)) for n in slots], dtype=np.int64)

    def _soft(self, stats: Stats) -> SoftSlots | None:
        parts = self._settings.parts
        return None if parts is None else mixture(stats, parts)


def mixture(stats: Stats, parts: int) -> SoftSlots:
    """The open slots as mixtures of their `parts` likeliest tokens; `stats` must have `logp`."""
    assert stats.logp is not None
    logp = stats.logp[stats.open]
    ids = np.argsort(-logp, axis=1, kind="stable")[:, :parts].astype(np.int64)
    weights = np.exp(np.take_along_axis(logp, ids, axis=1).astype(np.float64))
    return SoftSlots(stats.slots[stats.open], ids, weights / weights.sum(axis=1, keepdims=True))
