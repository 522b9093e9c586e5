"""How often a list model's answers are valid when they are written in one step, or one by one.

On questions about items that no training sees. Knows no cache and no policy: whole passes only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.languages import LANGUAGES, valid
from weft.decoding.diffusion.oracle.question import Question
from weft.decoding.diffusion.train.lists.dense import block_causal, hidden
from weft.decoding.diffusion.train.lists.drawing import drawn_question

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM


@dataclass(frozen=True, slots=True)
class Reader:
    """A model with what its slots see: `block` 0 is all of them. `causal`: the next token is read
    off the slot before it.
    """

    model: LlamaForCausalLM
    block: int = 0
    causal: bool = False

    def logits(self, ids: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        """ids, wanted [texts, slots]: [wanted slots, vocabulary], aligned."""
        block = 1 if self.causal else self.block
        sees = block_causal(ids.shape[1], block) if block else None
        at = wanted.roll(-1, dims=1) if self.causal else wanted
        with torch.no_grad():
            found: torch.Tensor = self.model.lm_head(hidden(self.model, ids, at, sees)).float()
        found[:, [words.MASK, words.PAD]] = -torch.inf
        return found


def questions(operation: str, n: int, count: int, seed: int = 0) -> list[Question]:
    """`count` of those that are held out."""
    chance = np.random.default_rng([seed, n])
    return [drawn_question(operation, n, chance, unseen=True) for _ in range(count)]


def validity(
    reader: Reader, asked: list[Question], passes: int, chance: np.random.Generator | None = None
) -> float:
    """The share of valid answers to questions of one form.

    passes: in how many an answer is written; 0: one token a pass, in random order for a model that
    fills slots, the next one for a causal model. chance: draws the order, and tokens as they are
    predicted; None: the likeliest tokens.
    """
    answers = _answers(reader, asked, passes, chance)
    right = [valid(question, row) for question, row in zip(asked, answers.tolist(), strict=True)]
    return float(np.mean(right))


def _answers(
    reader: Reader, asked: list[Question], passes: int, chance: np.random.Generator | None
) -> NDArray[np.int64]:
    """[questions, tokens of an answer], on a canvas with one slot more, which is an EOS."""
    first = len(asked[0].prompt)
    length = LANGUAGES[asked[0].operation].length(asked[0])
    ids = torch.full((len(asked), first + length + 1), words.MASK)
    for row, question in zip(ids, asked, strict=True):
        row[:first] = torch.tensor(question.prompt)
    order = np.tile(np.arange(first, first + length), (len(asked), 1))
    if not reader.causal and not reader.block:
        order = (chance or np.random.default_rng(0)).permuted(order, axis=1)
    for slots in np.array_split(order, passes or length, axis=1):
        wanted = torch.zeros_like(ids, dtype=torch.bool).scatter_(1, torch.tensor(slots), True)
        logits = reader.logits(ids, wanted)
        ids[wanted] = _drawn(logits, chance)
    answers: NDArray[np.int64] = ids[:, first : first + length].numpy()
    return answers


def _drawn(logits: torch.Tensor, chance: np.random.Generator | None) -> torch.Tensor:
    """[slots]: the likeliest tokens, or tokens at their probabilities (exponential race)."""
    if chance is None:
        return logits.argmax(dim=1)
    waits = torch.from_numpy(chance.exponential(size=tuple(logits.shape)))
    return (logits.double().softmax(dim=1) / waits).argmax(dim=1)
