"""What the three list models learn: masked slots from the rest, in a block, or the next token.

Masked diffusion (LLaDA, arXiv 2502.09992) in its uniformly weighted form: the mean of -log p over
masked slots, in expectation over answers. What stands in a slot is the average of all valid answers
that agree with what is read, so that drawing one of them adds no noise. Half of the texts are read
with all slots of their answers masked, as decoding begins; the others twice, with some masked and
then the rest (complementary masks, Fast-dLLM v2, arXiv 2509.26328). Knows no operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.train.lists.dense import block_causal, hidden
from weft.decoding.diffusion.train.lists.expected import expected
from weft.decoding.diffusion.train.lists.source import Texts
from weft.decoding.train.precision import sparing

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM

_END_RATES: Final = (0.0, 1.0)
"""Half of the texts have all of their last EOS masked or none: decoding often decides them first
and together."""


class MaskedLesson:
    """Learns what stands in masked slots. `block` 0: all slots see all; else block-causal, and of
    each text one block is learnt, with those before it whole.
    """

    def __init__(self, model: LlamaForCausalLM, block: int = 0) -> None:
        self.module: torch.nn.Module = model
        self._model = model
        self.block = block

    def loss(self, batch: Texts, chance: np.random.Generator) -> torch.Tensor:
        """The mean over masked slots."""
        ours = batch.answer | batch.end
        seen = torch.ones_like(ours)
        if self.block:
            now, seen = _one_block(ours, self.block, chance)
            ours = ours & now
        some = ours & _some(batch, chance)
        half = len(ours) // 2
        masked = torch.cat([ours[:half], some[half:], (ours & ~some)[half:]])
        texts = torch.cat([torch.arange(len(ours)), torch.arange(half, len(ours))])
        ids = batch.tokens[texts].masked_fill(masked, words.MASK)
        sees = block_causal(ids.shape[1], self.block) if self.block else None
        with sparing(ids.device):
            logits = self._model.lm_head(hidden(self._model, ids, masked, sees))
        goals = _goals(batch, texts, masked, seen[texts] & ~masked)
        return cross_entropy(logits.float(), goals)


class CausalLesson:
    """Learns the next token of answers: the autoregressive twin."""

    block = 1

    def __init__(self, model: LlamaForCausalLM) -> None:
        self.module: torch.nn.Module = model
        self._model = model

    def loss(self, batch: Texts, chance: np.random.Generator) -> torch.Tensor:  # noqa: ARG002
        """The mean over the tokens of answers and the EOS after them."""
        read = batch.tokens[:, :-1]
        learnt = batch.answer | batch.end
        with sparing(read.device):
            states = hidden(self._model, read, learnt[:, 1:], block_causal(read.shape[1], 1))
            logits = self._model.lm_head(states)
        texts, slots = learnt.nonzero(as_tuple=True)
        one = torch.zeros(len(slots), learnt.shape[1], dtype=torch.bool)
        one[torch.arange(len(slots)), slots] = True
        before = torch.arange(learnt.shape[1]) < slots[:, None]
        return cross_entropy(logits.float(), _goals(batch, texts, one, before))


def _goals(
    batch: Texts, texts: torch.Tensor, learnt: torch.Tensor, known: torch.Tensor
) -> torch.Tensor:
    """[learnt slots, vocabulary]: what stands there, on average over all answers that agree with
    what is known.

    texts          [rows]: which text each row is of
    learnt, known  [rows, slots]
    """
    tokens = batch.tokens[texts][learnt]
    goals = torch.nn.functional.one_hot(tokens, words.SIZE).float()
    first = 0
    for text, row, sure in zip(texts.tolist(), learnt.numpy(), known.numpy(), strict=True):
        mine = batch.answer[text].numpy()
        wanted = row[mine]
        count = int(wanted.sum())
        if count:
            answer = batch.tokens[text].numpy()[mine]
            found = expected(batch.questions[text], answer, sure[mine])
            if found is not None:
                alphabet, shares = found
                goals[first : first + count] = 0.0
                goals[first : first + count, torch.from_numpy(alphabet)] = torch.from_numpy(
                    shares[wanted]
                )
        first += int(row.sum())
    return goals


def _some(batch: Texts, chance: np.random.Generator) -> torch.Tensor:
    """[texts, slots]: each at a rate of its text; the EOS after an answer at one of their own."""
    texts, slots = batch.tokens.shape
    rates = chance.random((texts, 2))
    ends = chance.integers(4, size=texts)
    rates[:, 1] = np.select([ends == 0, ends == 1], _END_RATES, rates[:, 1])
    rate = np.where(batch.end.numpy(), rates[:, 1:], rates[:, :1])
    return torch.from_numpy(chance.random((texts, slots)) < rate)


def _one_block(
    ours: torch.Tensor, block: int, chance: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """[texts, slots] each: of each text a block that has slots of `ours`; it and those before."""
    slots = ours.shape[1]
    first = ours.to(torch.int8).argmax(dim=1).numpy() // block
    last = (slots - 1) // block
    chosen = first + (chance.random(len(ours)) * (last - first + 1)).astype(np.int64)
    blocks = torch.arange(slots) // block
    now = torch.from_numpy(chosen)[:, None]
    return blocks == now, blocks <= now
