"""Policies that remember earlier predictions of a slot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Bits, Canvas, Slots
from weft.decoding.diffusion.policies.ranking import commit, most_confident
from weft.decoding.diffusion.policies.uniform_state import mixture
from weft.decoding.diffusion.ports import CommitPolicy, CommitSession, Need
from weft.decoding.diffusion.query import SoftSlots
from weft.decoding.diffusion.stats import SampledTokens, Stats, log_probabilities, reaches

_SPENT = 1e-3
"""Smaller credits are dropped."""


@dataclass(frozen=True, slots=True)
class KlassPolicy:
    """Token-level KL-adaptive stability sampling (KLASS, Kim et al. 2025).

    A slot is written when its confidence reaches `confidence` and the prediction moved by less
    than `divergence` nats of KL(now, before) in each of the last `history` passes. Where no slot
    qualifies, the `least` surest are written.
    """

    confidence: float = 0.6
    divergence: float = 0.015
    history: int = 2
    least: int = 1
    needs: frozenset[Need] = frozenset({"distribution"})

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> _KlassSession:
        return _KlassSession(self)

    def most_forwards(self, slots: int) -> int:
        return -(-slots // self.least)


class _KlassSession:
    def __init__(self, settings: KlassPolicy) -> None:
        self._settings = settings
        self._calm: dict[int, int] = {}

    def propose(self, stats: Stats, drawn: SampledTokens, _canvas: Canvas) -> Action:
        settings = self._settings
        calm = np.where(np.isnan(stats.kl), False, stats.kl < settings.divergence)
        # passes in a row for which each slot has been calm; an unread slot starts anew
        self._calm = {
            int(slot): self._calm.get(int(slot), 0) + 1 for slot in stats.slots[calm & stats.open]
        }
        lasting = np.array([self._calm.get(int(s), 0) >= settings.history for s in stats.slots])
        chosen = stats.open & lasting & reaches(stats.confidence, settings.confidence)
        if not chosen.any():
            chosen = most_confident(stats, settings.least)
        return commit(stats, drawn, chosen)


@dataclass(frozen=True, slots=True)
class CreditPolicy:
    """CreditDecoding (Wang et al. 2025): raises the logits that the inner policy `then` reads.

    At every pass the credit of each (slot, token) is multiplied by `decay`, and the likeliest
    token of a slot earns p ** `power`. Its logit rises by `weight` ln(1 + credit).
    A slot that was opened again starts without credit.
    """

    then: CommitPolicy
    weight: float = 0.65
    decay: float = 0.8
    power: float = 0.2

    @property
    def needs(self) -> frozenset[Need]:
        return self.then.needs

    def begin(self, canvas: Canvas, traits: ModelTraits) -> _CreditSession:
        return _CreditSession(self, self.then.begin(canvas, traits))

    def most_forwards(self, slots: int) -> int:
        return self.then.most_forwards(slots)


class _CreditSession:
    def __init__(self, settings: CreditPolicy, then: CommitSession) -> None:
        self._settings, self._then = settings, then
        self._earned: dict[tuple[int, int], dict[int, float]] = {}

    def adjust(
        self, logits: NDArray[np.float32], slots: Slots, canvas: Canvas
    ) -> NDArray[np.float32]:
        raised = logits.copy()
        for row in np.flatnonzero(canvas.undecided[slots]):
            slot = int(slots[row])
            earned = self._earn((slot, int(canvas.visits[slot])), logits[row])
            for token, credit in earned.items():
                raised[row, token] += self._settings.weight * np.log1p(credit)
        return raised

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        return self._then.propose(stats, drawn, canvas)

    def _earn(self, key: tuple[int, int], logits: NDArray[np.float32]) -> dict[int, float]:
        """The credits of a slot after this pass."""
        settings = self._settings
        earned = {
            token: credit * settings.decay
            for token, credit in self._earned.get(key, {}).items()
            if credit * settings.decay > _SPENT
        }
        likeliest = int(logits.argmax())
        p = float(np.exp(log_probabilities(logits)[likeliest]))
        earned[likeliest] = earned.get(likeliest, 0.0) + p**settings.power
        self._earned[key] = earned
        return earned


@dataclass(frozen=True, slots=True)
class SmoothingPolicy:
    """dInfer's IterSmooth (Ma et al. 2025), with a threshold.

    Slots whose confidence reaches a threshold are written, the surest at least; it falls from 1
    by `fall` at each pass of a window, down to `threshold`. Open slots are read as the mask and,
    with a weight that rises from `weight` by `rise` up to `most`, the `parts` likeliest tokens of
    the last prediction. Models that were not trained on mixtures need small weights.
    """

    threshold: float = 0.9
    fall: float = 0.02
    weight: float = 0.15
    rise: float = 0.02
    most: float = 0.3
    parts: int = 8
    needs: frozenset[Need] = frozenset({"distribution"})

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> _SmoothingSession:
        return _SmoothingSession(self, traits.mask_id)

    def most_forwards(self, slots: int) -> int:
        return slots


class _SmoothingSession:
    def __init__(self, settings: SmoothingPolicy, mask_id: int | None) -> None:
        self._settings, self._mask = settings, mask_id

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        settings, passes = self._settings, canvas.step_in_block
        threshold = max(settings.threshold, 1.0 - settings.fall * passes)
        chosen = (stats.open & reaches(stats.confidence, threshold)) | most_confident(stats, 1)
        weight = min(settings.most, settings.weight + settings.rise * passes)
        return Action(
            commit=SlotTokens.of(stats.slots[chosen], drawn.ids[chosen]),
            soft=self._soft(stats, chosen, weight),
        )

    def _soft(self, stats: Stats, chosen: Bits, weight: float) -> SoftSlots | None:
        if self._mask is None:
            return None
        soft = mixture(stats, self._settings.parts)
        left = ~chosen[stats.open]
        ids, weights = soft.ids[left], weight * soft.weights[left]
        masks = np.full((len(ids), 1), self._mask, dtype=np.int64)
        rest = np.full((len(ids), 1), 1.0 - weight)
        return SoftSlots(soft.slots[left], np.hstack([masks, ids]), np.hstack([rest, weights]))
