"""Policies that open written slots again, by how the other slots predict them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Bits, Canvas, Slots
from weft.decoding.diffusion.policies.ranking import (
    CommitRule,
    at_step,
    commit,
    most_confident,
    rewritable,
)
from weft.decoding.diffusion.ports import Need
from weft.decoding.diffusion.stats import SampledTokens, Stats, log_probabilities, reaches
from weft.decoding.sampling import TokenRng


def shadow_probabilities(stats: Stats, canvas: Canvas) -> tuple[Slots, NDArray[np.float64]]:
    """Slots with a shadow, and the probability of their tokens given all the other slots."""
    if stats.shadow is None:
        return np.empty(0, dtype=np.int64), np.empty(0)
    slots, logits = stats.shadow
    logp = log_probabilities(logits)[np.arange(len(slots)), canvas.ids[slots]]
    return slots, np.exp(logp.astype(np.float64))


@dataclass(frozen=True, slots=True)
class WinoPolicy(CommitRule):
    """Wide-in, narrow-out (Hong et al. 2025): drafts widely, and takes back tokens that all the
    other slots do not predict, by masked copies of them (shadows).

    Slots whose confidence reaches `draft` are written: at most `share` of the open ones, a cap
    between `few` and `many`. Written slots of the window are predicted through shadows, which see
    all but the slot itself, and opened again below `verify`: always fewer than this pass wrote, so
    that it ends. What the last pass of a window writes is not verified.
    """

    draft: float = 0.6
    verify: float = 0.9
    share: float = 0.7
    few: int = 5
    many: int = 20

    def shadows(self, canvas: Canvas) -> Slots:
        return rewritable(canvas)

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        chosen = self.rows(stats, drawn, canvas)
        slots, p = shadow_probabilities(stats, canvas)
        doubted = ~reaches(p, self.verify)
        order = np.argsort(p, kind="stable")  # the least expected first
        most = max(0, int(chosen.sum()) - 1)
        remask = np.sort(slots[order][doubted[order]][:most])
        return Action(commit=commit(stats, drawn, chosen).commit, remask=remask)

    def rows(self, stats: Stats, _drawn: SampledTokens, _canvas: Canvas) -> Bits:
        """The surest, up to the cap, that reach `draft`; at least one."""
        cap = int(min(max(self.share * int(stats.open.sum()), self.few), self.many))
        chosen = most_confident(stats, cap) & reaches(stats.confidence, self.draft)
        return chosen if chosen.any() else most_confident(stats, 1)


@dataclass(frozen=True, slots=True)
class RunningConfidencePolicy:
    """Running confidence remasking (MDPO, He et al. 2025).

    After pass s of a window, s times `count` slots are kept: those with the highest confidence that
    they ever had. Other written slots are opened again.
    """

    count: int = 1
    needs: frozenset[Need] = frozenset()

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> _RunningConfidenceSession:
        return _RunningConfidenceSession(self.count)

    def most_forwards(self, slots: int) -> int:
        return -(-slots // self.count)


class _RunningConfidenceSession:
    def __init__(self, count: int) -> None:
        self._count = count
        self._best: dict[int, float] = {}
        self._block = -1

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        if canvas.block != self._block:
            self._block, self._best = canvas.block, {}
        opened, decided = stats.slots[stats.open], rewritable(canvas)
        for slot, confidence in zip(opened, stats.confidence[stats.open], strict=True):
            self._best[int(slot)] = max(self._best.get(int(slot), 0.0), float(confidence))
        slots = np.sort(np.concatenate([opened, decided]))
        score = np.array([self._best.get(int(slot), 1.0) for slot in slots])
        kept = slots[np.argsort(-score, kind="stable")][: self._count * (canvas.step_in_block + 1)]
        fresh = stats.open & np.isin(stats.slots, kept)
        return Action(
            commit=commit(stats, drawn, fresh).commit, remask=decided[~np.isin(decided, kept)]
        )


@dataclass(frozen=True, slots=True)
class RemdmPolicy:
    """ReMDM with confidence-based rates (Wang et al. 2025): opens slots again at random, doubtful
    ones more often.

    After pass s of a window, s times `count` slots are decided. At each pass a written slot is
    opened again with a probability of `rate` times the softmax of -psi over the written ones,
    psi being its probability when it was written; at most `budget` times in a window.
    """

    count: int = 1
    rate: float = 0.2
    budget: int = 32
    needs: frozenset[Need] = frozenset()

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> _RemdmSession:
        return _RemdmSession(self)

    def most_forwards(self, slots: int) -> int:
        return -(-slots // self.count)


class _RemdmSession:
    def __init__(self, settings: RemdmPolicy) -> None:
        self._settings = settings
        self._block, self._left = -1, 0
        self._psi: dict[int, float] = {}

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        if canvas.block != self._block:
            self._block, self._left, self._psi = canvas.block, self._settings.budget, {}
        decided = rewritable(canvas)
        due = self._settings.count * (canvas.step_in_block + 1) - len(decided)
        # each opened slot must be replaced by an open one that is written now
        most = min(self._left, int(stats.open.sum()) - due)
        again = self._opened(decided, canvas, drawn.rng)[: max(0, most)]
        self._left -= len(again)
        chosen = most_confident(stats, due + len(again))
        for slot, p in zip(stats.slots[chosen], drawn.p[chosen], strict=True):
            self._psi[int(slot)] = float(p)
        return Action(
            commit=SlotTokens.of(stats.slots[chosen], drawn.ids[chosen]), remask=np.sort(again)
        )

    def _opened(self, decided: Slots, canvas: Canvas, rng: TokenRng) -> Slots:
        if not len(decided):
            return decided
        weights = np.exp([-self._psi.get(int(slot), 1.0) for slot in decided])
        rates = self._settings.rate * weights / weights.sum()
        hit = [
            rng.accepts(float(rate), at_step(canvas.step) + int(slot) - canvas.first, 0)
            for slot, rate in zip(decided, rates, strict=True)
        ]
        opened: Slots = decided[np.array(hit)]
        return opened
