"""The layout of a text that trains all its blocks in one pass: its tokens, then noisy copies.

The layout of BD3-LM (arXiv 2503.09573) without unread rows: prompts are not copied, and the last
block is not among the clean rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class SlotNoise:
    """The open slots of a text, and the weight of each: both [slots]."""

    hidden: Bits
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NoiseSampler:
    """Samples noise: every block has its own level, the share of its slots that is open.

    complement  a second noise opens the other slots, so that each is trained once per sample
                (Fast-dLLM v2, arXiv 2509.26328)
    weighted    a slot has weight 1 / level, as in the likelihood bound (LLaDA, arXiv 2502.09992),
                with levels from 0.1 to 0.9; else all weights are equal
    """

    complement: bool = True
    weighted: bool = False

    def drawn(
        self,
        slots: int,
        answer: int,
        block: int,
        rng: np.random.Generator,
        level: float | None = None,
    ) -> list[SlotNoise]:
        """Noise for whole blocks whose slots from `answer` on are trained. `level`: of all."""
        ours = np.arange(slots) >= answer
        low, high = (0.1, 0.9) if self.weighted else (0.0, 1.0)
        levels = rng.uniform(low, high, slots)[np.arange(slots) // block]
        levels = levels if level is None else np.full(slots, level)
        hidden = rng.uniform(size=slots) < levels
        noises = [(hidden, levels), (~hidden, 1.0 - levels)][: 1 + self.complement]
        return [
            SlotNoise(opened & ours, 1.0 / of if self.weighted else np.ones(slots))
            for opened, of in noises
        ]


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCopy:
    """Blocks of a text at moments of their denoising. All [rows]: the first slots of every block.

    slots    their slots in the text
    ids      tokens, or the mask
    open     whether the slot is trained
    goals    the right tokens of trained slots
    weights  their weights
    """

    slots: Ids
    ids: Ids
    open: Bits
    goals: Ids
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingLayout:
    """One text as rows. Row i reads `ids[i]` at position `slots[i]`.

    ids         [rows] tokens, or the mask
    slots       [rows] their slots in the text
    sees        [rows, rows]
    predictors  [goals] the rows that predict
    goals       [goals] the right tokens
    weights     [goals]
    """

    ids: Ids
    slots: Ids
    sees: Bits
    predictors: Ids
    goals: Ids
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LayoutBuilder:
    """Lays out texts in blocks of `block` slots, counted from slot 0; open slots have `mask`.

    A text is filled up to the end of its last block with `end`. `shifted`: a row predicts the slot
    after its own, as a causal model does.
    """

    block: int
    mask: int
    end: int
    shifted: bool = True

    def slots(self, tokens: Ids) -> Ids:
        """A text [tokens] as whole blocks [slots]; the rest of a truncated one is dropped."""
        if tokens[-1] != self.end:
            return tokens[: len(tokens) // self.block * self.block]
        return np.concatenate([tokens, np.full(-len(tokens) % self.block, self.end)])

    def first(self, answer: int) -> int:
        """The first slot of the block of slot `answer`."""
        return answer // self.block * self.block

    def noisy(self, tokens: Ids, answer: int, noise: SlotNoise) -> NoisyCopy:
        """The blocks of a text from slot `answer` on under `noise`, which is [slots]."""
        first = self.first(answer)
        copied, opened = tokens[first:], noise.hidden[first:]
        ids = np.where(opened, self.mask, copied)
        return NoisyCopy(np.arange(first, len(tokens)), ids, opened, copied, noise.weights[first:])

    def layout(self, tokens: Ids, copies: Sequence[NoisyCopy]) -> TrainingLayout:
        """The layout of whole blocks `tokens` with `copies` of the last of them."""
        clean = len(tokens) - self.block  # no block sees the last one
        ids, slots, number = [tokens[:clean]], [np.arange(clean)], [np.zeros(clean, np.int64)]
        predictors, goals, weights = [], [], []
        rows = clean
        for at, copy in enumerate(copies, 1):
            learnt = np.flatnonzero(copy.open)
            predictors.append(self._predictors(copy.slots[learnt], rows + learnt))
            goals.append(copy.goals[learnt])
            weights.append(copy.weights[learnt])
            ids.append(copy.ids)
            slots.append(copy.slots)
            number.append(np.full(len(copy.ids), at))
            rows += len(copy.ids)
        positions = np.concatenate(slots)
        return TrainingLayout(
            np.concatenate(ids),
            positions,
            self._sees(positions, np.concatenate(number)),
            np.concatenate(predictors),
            np.concatenate(goals),
            np.concatenate(weights),
        )

    def _predictors(self, slots: Ids, rows: Ids) -> Ids:
        """The rows that predict `slots` of a copy, whose own rows are `rows`."""
        if not self.shifted:
            return rows
        # the slot before a block is decided, among the clean rows
        return np.where(slots % self.block == 0, slots - 1, rows - 1)

    def _sees(self, slots: Ids, copy: Ids) -> Bits:
        """A row sees the clean rows of the blocks before, and its own block of its own copy."""
        blocks = slots // self.block
        before: Bits = (copy == 0) & (blocks[:, None] > blocks)
        within: Bits = (copy[:, None] == copy) & (blocks[:, None] == blocks)
        return before | within
