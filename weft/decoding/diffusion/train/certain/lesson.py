"""Certainty-forcing distillation of a model on its own texts (dParallel, arXiv 2509.26488).

Of each text one block is learnt, with those before it whole and those after it masked: the cross
entropy of its masked slots, and of its other slots with these masked instead; and, where the
likeliest token is right already, the entropy of a sharpened prediction, so that it gets surer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from weft.core.errors import InputError
from weft.decoding.diffusion.train.certain.student import Student
from weft.decoding.diffusion.train.own_texts import OwnText

_SHARPENED: Final = 0.5
_CERTAINTY: Final = 2.0
"""What entropy counts, beside cross entropy."""


@dataclass(frozen=True, slots=True, eq=False)
class OwnTexts:
    """Texts of equal length side by side. ids [texts, slots]; answer: where each answer begins."""

    ids: torch.Tensor
    answer: torch.Tensor

    @property
    def learnt_tokens(self) -> int:
        """Slots of answers."""
        return int((self.ids.shape[1] - self.answer).sum())


class OwnTextsSource:
    """Draws from `texts`, once they are given; those of a batch are equally long."""

    def __init__(self) -> None:
        self._by_length: list[list[OwnText]] = []
        self._shares = np.zeros(0)

    def give(self, texts: Sequence[OwnText]) -> None:
        """Raises: `InputError` for none."""
        if not texts:
            raise InputError("there are no texts to learn from")
        by_length: dict[int, list[OwnText]] = defaultdict(list)
        for text in texts:
            by_length[len(text.ids)].append(text)
        self._by_length = [by_length[length] for length in sorted(by_length)]
        self._shares = np.array([len(some) for some in self._by_length]) / len(texts)

    def draw(self, chance: np.random.Generator, texts: int, longest: int) -> OwnTexts:  # noqa: ARG002
        """`texts` of one length, some more than once where there are fewer."""
        some = self._by_length[chance.choice(len(self._shares), p=self._shares)]
        chosen = [some[at] for at in chance.integers(len(some), size=texts)]
        ids = np.array([text.ids for text in chosen])
        first = np.array([len(text.prompt) for text in chosen])
        return OwnTexts(torch.from_numpy(ids), torch.from_numpy(first))


class CertainLesson:
    """`block` slots are learnt at once, counted from the answer's first; `own`: of a model whose
    slots see no later block, which are counted from slot 0 and are these blocks. Of a block, a
    share from `least` to all is masked.
    """

    def __init__(self, student: Student, block: int, own: bool, least: float) -> None:
        self.module: torch.nn.Module = student.module
        self._student = student
        self._block, self._own, self._least = block, own, least

    def loss(self, batch: OwnTexts, chance: np.random.Generator) -> torch.Tensor:
        """Cross entropies of both masks, each over its slots, and twice the entropy."""
        slots = batch.ids.shape[1]
        at = torch.arange(slots)
        starts = torch.zeros_like(batch.answer) if self._own else batch.answer
        blocks = (at - starts[:, None]).div(self._block, rounding_mode="floor")
        ours = at >= batch.answer[:, None]
        now = self._chosen(batch, blocks, chance)
        inside = ours & (blocks == now)
        masked = inside & self._some(inside, chance)
        later = ours & (blocks > now)
        both = torch.cat([masked, inside & ~masked])
        hidden = both | torch.cat([later, later])
        ids = torch.cat([batch.ids, batch.ids])
        device = self._student.device
        logits = self._student.logits(
            ids.masked_fill(hidden, self._student.mask).to(device),
            both.to(device),
            self._sees(slots).to(device),
        )
        goals = ids[both].to(device)
        wrong = cross_entropy(logits, goals, reduction="none")
        count = int(masked.sum())
        losses = wrong[:count].mean()
        if count < len(wrong):
            losses = losses + wrong[count:].mean()
        right = logits.argmax(dim=1) == goals
        if not right.any():
            return losses
        sharp = (logits[right] / _SHARPENED).log_softmax(dim=1)
        entropy = -(sharp.exp() * sharp).sum(dim=1).mean()
        return losses + _CERTAINTY * entropy

    def _sees(self, slots: int) -> torch.Tensor:
        """[slots, slots]: a slot sees all, or its block and those before."""
        blocks = torch.arange(slots) // (self._block if self._own else slots)
        return blocks[:, None] >= blocks

    def _chosen(
        self, batch: OwnTexts, blocks: torch.Tensor, chance: np.random.Generator
    ) -> torch.Tensor:
        """[texts, 1]: a block of each answer."""
        first = blocks.gather(1, batch.answer[:, None])
        count = blocks[:, -1:] - first + 1
        share = torch.from_numpy(chance.random((len(blocks), 1)))
        return first + (share * count).long()

    def _some(self, inside: torch.Tensor, chance: np.random.Generator) -> torch.Tensor:
        """[texts, slots]: a share of those `inside`, one at least."""
        texts, slots = inside.shape
        count = inside.sum(dim=1, keepdim=True).numpy()
        share = self._least + (1.0 - self._least) * chance.random((texts, 1))
        wanted = np.maximum(np.rint(share * count), 1)
        order = np.where(inside.numpy(), chance.random((texts, slots)), 2.0)
        rank = order.argsort(axis=1).argsort(axis=1)
        return torch.from_numpy(rank < wanted)
