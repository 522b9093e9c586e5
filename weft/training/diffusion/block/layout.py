"""How a text is laid out to learn all its blocks in one pass: its tokens, then copies with open
slots.

The layout of BD3-LM (arXiv 2503.09573) without the rows that nobody reads: prompts are never
copied, and the last block is only seen by itself.
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
    """Which slots of a text are open, and how much each of them counts: both [slots]."""

    hidden: Bits
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NoiseSampler:
    """How noise is drawn: every block has a level of its own, the share of its slots that is open.

    complement  a second noise opens the other slots, so that each is learnt once for each draw
                (Fast-dLLM v2, arXiv 2509.26328)
    weighted    a slot counts by one over the level, as the bound on the likelihood has it (LLaDA,
                arXiv 2502.09992); levels are from 0.1 to 0.9 then. Else all count alike
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
        """Of a text of whole blocks whose slots from `answer` on are learnt. `level`: of all."""
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
    """Blocks of a text as they might stand while they are written. [rows] each, of every block the
    first slots in their order.

    slots    which slots of the text they are
    ids      tokens, or the mask
    open     whether the slot is learnt
    goals    the tokens that should stand there, where it is
    weights  how much it counts
    """

    slots: Ids
    ids: Ids
    open: Bits
    goals: Ids
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingLayout:
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
class LayoutBuilder:
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

    def first(self, answer: int) -> int:
        """Where the block begins in which slot `answer` is."""
        return answer // self.block * self.block

    def noisy(self, tokens: Ids, answer: int, noise: SlotNoise) -> NoisyCopy:
        """The blocks of a text from slot `answer` on under `noise`, which is [slots]."""
        first = self.first(answer)
        copied, opened = tokens[first:], noise.hidden[first:]
        ids = np.where(opened, self.mask, copied)
        return NoisyCopy(np.arange(first, len(tokens)), ids, opened, copied, noise.weights[first:])

    def layout(self, tokens: Ids, copies: Sequence[NoisyCopy]) -> TrainingLayout:
        """Whole blocks `tokens` with `copies` of the last of them."""
        clean = len(tokens) - self.block  # the last block: nothing comes after it
        ids, slots, number = [tokens[:clean]], [np.arange(clean)], [np.zeros(clean, np.int64)]
        asked, goals, weights = [], [], []
        rows = clean
        for at, copy in enumerate(copies, 1):
            learnt = np.flatnonzero(copy.open)
            asked.append(self._predictors(copy.slots[learnt], rows + learnt))
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
            np.concatenate(asked),
            np.concatenate(goals),
            np.concatenate(weights),
        )

    def _predictors(self, slots: Ids, rows: Ids) -> Ids:
        """The rows that predict `slots` of a copy, which are `rows` themselves."""
        if not self.shifted:
            return rows
        # the slot before a block's first one is a decided one, among the clean rows
        return np.where(slots % self.block == 0, slots - 1, rows - 1)

    def _sees(self, slots: Ids, copy: Ids) -> Bits:
        """A row sees the clean rows of the blocks before, and its own block of its own copy."""
        blocks = slots // self.block
        before: Bits = (copy == 0) & (blocks[:, None] > blocks)
        within: Bits = (copy[:, None] == copy) & (blocks[:, None] == blocks)
        return before | within
