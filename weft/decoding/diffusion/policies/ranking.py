"""Orders of open slots, and the base class of policies that are a rule for which are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Bits, Canvas, Slots
from weft.decoding.diffusion.ports import Need
from weft.decoding.diffusion.stats import OF_POLICIES, SampledTokens, Stats, reaches
from weft.decoding.sampling import TokenRng

Score = Literal["confidence", "drawn", "margin", "entropy", "leftmost", "random"]
"""What a slot is ranked by: the probability of its likeliest token, or of the sampled one; the
margin between the two likeliest; low entropy; its position; nothing.

`drawn` prefers slots with a likely sample, so that texts are not samples of the model's
distribution even one slot at a time."""

_STEPS: Final = 2.0**20
Rows = NDArray[np.intp]


class CommitRule(ABC):
    """Implements `CommitPolicy` and `CommitSession`: a stateless rule."""

    needs: ClassVar[frozenset[Need]] = frozenset()

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> Self:
        return self

    def most_forwards(self, slots: int) -> int:
        return slots

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        return commit(stats, drawn, self.rows(stats, drawn, canvas))

    @abstractmethod
    def rows(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Rows | Bits:
        """Rows of `stats` that are written, at least one."""


def score_of(score: Score, stats: Stats, drawn: SampledTokens) -> NDArray[np.float64]:
    """[slots], higher comes first. `random`: all equal."""
    match score:
        case "confidence":
            return stats.confidence
        case "drawn":
            return drawn.p
        case "margin":
            return stats.margin
        case "entropy":
            return -stats.entropy
        case "leftmost":
            return -stats.slots.astype(np.float64)
        case "random":
            return np.zeros(len(stats.slots))


def rank_rows(score: NDArray[np.float64], among: Bits) -> Rows:
    """The rows `among` [slots] by descending score, the leftmost first among equals.

    Scores of float32 logits that differ by less than a millionth are equal: their order would
    depend on the machine.
    """
    rows = np.flatnonzero(among)
    return rows[np.argsort(-np.rint(score[rows] * _STEPS), kind="stable")]


def most_confident(stats: Stats, count: int) -> Bits:
    """[slots]: the `count` open ones of the highest confidence, as `rank_rows` orders them."""
    chosen = np.zeros(len(stats.slots), dtype=np.bool_)
    chosen[rank_rows(stats.confidence, stats.open)[:count]] = True
    return chosen


def confident_rows(stats: Stats, threshold: float, least: int = 1) -> Bits:
    """[slots]: the open ones whose confidence reaches `threshold`, else the `least` surest."""
    chosen = stats.open & reaches(stats.confidence, threshold)
    return chosen if chosen.any() else most_confident(stats, least)


def rewritable(canvas: Canvas) -> Slots:
    """The decided slots of the window that may be opened or edited again, ascending."""
    inside = np.arange(canvas.window.start, canvas.window.stop)
    slots: Slots = inside[~canvas.undecided[inside] & ~canvas.frozen[inside]]
    return slots


def sample_rows(
    score: NDArray[np.float64], among: Bits, count: int, spread: float, rng: TokenRng, step: int
) -> Rows:
    """`count` of the rows `among` [slots], without replacement, by weights exp(score / spread)."""
    weights = np.where(among, np.exp((score - score[among].max()) / spread), 0.0)
    rows = []
    for draw in range(min(count, int(among.sum()))):
        rows.append(rng.token(weights / weights.sum(), at_step(step) + draw))
        weights[rows[-1]] = 0.0
        if not weights.any():  # the rest is too unlikely for float64
            left = among.copy()
            left[rows] = False
            return np.array([*rows, *rank_rows(score, left)[: count - len(rows)]], dtype=np.intp)
    return np.array(rows, dtype=np.intp)


def at_step(step: int) -> int:
    """The first random position that belongs to a step of a policy."""
    return OF_POLICIES + (step << 32)


def commit(stats: Stats, drawn: SampledTokens, rows: Rows | Bits) -> Action:
    """Write the sampled tokens of these rows."""
    return Action(commit=SlotTokens.of(stats.slots[rows], drawn.ids[rows]))
