"""How a text is laid out to learn all its blocks in one pass: its tokens, then noisy copies.

The layout of BD3-LM (arXiv 2503.09573) without the rows that nobody reads: prompts are never
noisy, and the last block is only seen by itself. Knows tokens; knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.train.block.noise import Bits, Ids, Noise


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """One text as rows. Row i reads `ids[i]` at position `slots[i]`.

    ids      [rows] tokens, or the mask
    slots    [rows] which slots of the text they are
    sees     [rows, rows]
    asked    [goals] the rows that predict
    goals    [goals] the tokens that they should predict
    weights  [goals]
    """

    ids: Ids
    slots: Ids
    sees: Bits
    asked: Ids
    goals: Ids
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Laying:
    """How: blocks of `block` slots, counted from slot 0; an open slot holds `mask`.

    A text is filled up to the end of its last block with `end`. `shifted`: a row predicts the slot
    after its own, as it did before it learnt to fill blocks.
    """

    block: int
    mask: int
    end: int
    shifted: bool = True

    def slots(self, tokens: Ids) -> Ids:
        """A text [tokens] as whole blocks [slots]; the rest of one that was cut off is left out."""
        if tokens[-1] != self.end:
            return tokens[: len(tokens) // self.block * self.block]
        return np.concatenate([tokens, np.full(-len(tokens) % self.block, self.end)])

    def layout(self, tokens: Ids, answer: int, noises: Sequence[Noise]) -> Layout:
        """Whole blocks `tokens`, of which those from slot `answer` on are learnt, with a copy of
        the answer's blocks for each of `noises`.
        """
        first = answer // self.block * self.block
        clean = len(tokens) - self.block  # the last block: nothing comes after it
        copied = np.arange(first, len(tokens))
        slots = np.concatenate([np.arange(clean), *[copied] * len(noises)])
        copy = np.repeat(np.arange(len(noises) + 1), [clean, *[len(copied)] * len(noises)])
        ids = tokens[slots]
        asked, goals, weights = [], [], []
        for number, noise in enumerate(noises):
            at = clean + number * len(copied)  # the row of slot `first` in this copy
            ids[at : at + len(copied)][noise.hidden[first:]] = self.mask
            learnt = np.flatnonzero(noise.hidden)
            asked.append(self._predictors(learnt, at - first))
            goals.append(tokens[learnt])
            weights.append(noise.weights[learnt])
        return Layout(
            ids,
            slots,
            self._sees(slots, copy),
            np.concatenate(asked),
            np.concatenate(goals),
            np.concatenate(weights),
        )

    def _predictors(self, learnt: Ids, offset: int) -> Ids:
        """The rows that predict slots of a copy, whose slot s is row s + `offset`."""
        if not self.shifted:
            return learnt + offset
        # the slot before a block's first one is a decided one, among the clean rows
        return np.where(learnt % self.block == 0, learnt - 1, learnt - 1 + offset)

    def _sees(self, slots: Ids, copy: Ids) -> Bits:
        """A row sees the clean rows of the blocks before, and its own block of its own copy."""
        blocks = slots // self.block
        before: Bits = (copy == 0) & (blocks[:, None] > blocks)
        within: Bits = (copy[:, None] == copy) & (blocks[:, None] == blocks)
        return before | within
