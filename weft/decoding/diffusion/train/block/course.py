"""The lesson: open slots of a block are predicted from what is decided of it and all before it.

After BD3-LM (arXiv 2503.09573), with the shift and the complementary noise of Fast-dLLM v2
(2509.26328) and blocks that grow from one slot, where it is the model's old task (NBDiff).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from weft.core.errors import InputError
from weft.decoding.diffusion.train.block.forms import copied
from weft.decoding.diffusion.train.block.layout import Copy, Laying, Layout
from weft.decoding.diffusion.train.block.learner import Learner
from weft.decoding.diffusion.train.block.noise import Ids, Noising
from weft.decoding.diffusion.train.block.pages import Page, Pages

_HALF: Final = 0.5


@dataclass(frozen=True, slots=True)
class Growth:
    """Blocks begin with one slot and double every `every` steps up to `block`; 0: at once."""

    block: int
    every: int

    def at(self, step: int) -> int:
        """The block of a step, from 0."""
        return self.block if not self.every else min(self.block, 1 << min(step // self.every, 16))


@dataclass(frozen=True, slots=True)
class Found:
    """On texts that were not learnt from: cross entropy in nats of an open slot, half of them open,
    and the share of open slots whose likeliest token is the right one.
    """

    cross_entropy: float
    accuracy: float
    slots: int


class BlockCourse:
    """Teaches `learner` to fill blocks."""

    def __init__(self, learner: Learner, laying: Laying, noising: Noising, growth: Growth) -> None:
        self.module = learner.module
        self._learner = learner
        self._laying = laying
        self._noising = noising
        self._growth = growth
        self.grow_to(0)

    def grow_to(self, step: int) -> None:
        """The lesson that comes next is that of `step`."""
        self._now = replace(self._laying, block=self._growth.at(step))

    def loss(self, batch: Pages, chance: np.random.Generator) -> torch.Tensor:
        """Raises: `InputError` for a batch without a slot to learn."""
        layouts = self._laid(batch.texts, self._now, chance)
        logits, goals = self._predicted(layouts)
        wrong = cross_entropy(logits, goals, reduction="none")
        weights = torch.from_numpy(np.concatenate([layout.weights for layout in layouts])).to(wrong)
        return (wrong * weights).sum() / weights.sum().clamp(min=1.0)

    def examine(
        self, held_out: Sequence[Page], texts: int, stop: Callable[[], bool] = lambda: False
    ) -> Found | None:
        """`texts` at once, with the blocks it is to end with. The same noise every time.

        None when `stop` said so.
        """
        chance = np.random.default_rng(0)
        total, right, slots = 0.0, 0, 0
        pages = sorted(held_out, key=lambda page: len(page.tokens))
        with torch.no_grad():
            for first in range(0, len(pages), texts):
                if stop():
                    return None
                laid = self._laid(pages[first : first + texts], self._laying, chance, _HALF)
                logits, goals = self._predicted(laid)
                total += float(cross_entropy(logits, goals, reduction="sum"))
                right += int((logits.argmax(-1) == goals).sum())
                slots += len(goals)
        return Found(total / slots, right / slots, slots)

    def _laid(
        self,
        pages: Sequence[Page],
        laying: Laying,
        chance: np.random.Generator,
        level: float | None = None,
    ) -> list[Layout]:
        """Every text whose answer begins in a whole block of what is there of it."""
        layouts = []
        for page in pages:
            slots = laying.slots(page.tokens)
            if page.answer < len(slots):
                copies = self._copies(page, slots, laying, chance, level)
                layouts.append(laying.layout(slots, copies))
        if not any(len(layout.goals) for layout in layouts):
            raise InputError(
                "there is nothing to learn in these texts: they are cut off before their answers",
                hint="read more tokens of each text",
            )
        return layouts

    def _copies(
        self,
        page: Page,
        slots: Ids,
        laying: Laying,
        chance: np.random.Generator,
        level: float | None,
    ) -> list[Copy]:
        if page.form is not None:
            return [copied(page.form, slots, page.answer, laying, chance, level) for _ in range(2)]
        noises = self._noising.drawn(len(slots), page.answer, laying.block, chance, level)
        return [laying.noisy(slots, page.answer, noise) for noise in noises]

    def _predicted(self, layouts: Sequence[Layout]) -> tuple[torch.Tensor, torch.Tensor]:
        """The logits [goals, vocabulary] and the goals of all layouts in one pass."""
        rows = max(len(layout.ids) for layout in layouts)
        ids = torch.zeros(len(layouts), rows, dtype=torch.int64)
        slots = torch.zeros_like(ids)
        sees = torch.eye(rows, dtype=torch.bool).repeat(len(layouts), 1, 1)  # rows of none, too
        asked = []
        for text, layout in enumerate(layouts):
            count = len(layout.ids)
            ids[text, :count] = torch.from_numpy(layout.ids)
            slots[text, :count] = torch.from_numpy(layout.slots)
            sees[text, :count, :count] = torch.from_numpy(layout.sees)
            asked.append(torch.from_numpy(layout.asked) + text * rows)
        goals = torch.from_numpy(np.concatenate([layout.goals for layout in layouts]))
        logits = self._learner.logits(ids, slots, sees, torch.cat(asked))
        return logits, goals.to(logits.device)
