"""Turns as token ids, and the order in which a training reads them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from weft.core.errors import InputError
from weft.training.corpus import TokenBatch, TrainingText, batch_of
from weft.training.prompts import Conversation, Tokenizer

_CHUNK: Final = 32
"""Batches that are sorted by length together."""
_LATER: Final = 0.1
"""By how much of the first epoch each further call puts an item off."""
_LATEST: Final = 0.4


@dataclass(frozen=True, slots=True)
class PlannerExample:
    """`answer` to a conversation; `calls`: how many calls the answer makes."""

    messages: Conversation
    answer: str
    calls: int


@dataclass(frozen=True, slots=True)
class PlannerText:
    """An example as tokens."""

    text: TrainingText
    calls: int


def encode(model: Path, examples: Iterable[PlannerExample], longest: int) -> list[PlannerText]:
    """The examples that have at most `longest` tokens, each up to the end of its answer.

    Raises: `InputError` for a model without tokenizer or end token, or where none is short enough.
    """
    tokenizer = Tokenizer(model)
    end = tokenizer.end
    if end is None:
        raise InputError(f"{model} has no token that ends a text", hint="take a chat model")
    texts = []
    for example in examples:
        prompt = tokenizer.encode(example.messages)
        tokens = (*prompt, *tokenizer.plain(example.answer), end)
        if len(tokens) <= longest:
            texts.append(PlannerText(TrainingText(tokens, len(prompt)), example.calls))
    if not texts:
        raise InputError(f"no item has at most {longest} tokens", hint="raise --longest")
    return texts


def digest(texts: Sequence[PlannerText]) -> str:
    """SHA-256 of all tokens."""
    found = hashlib.sha256()
    for each in texts:
        found.update(np.array([each.text.answer, *each.text.tokens], dtype="<i4").tobytes())
    return found.hexdigest()


class PlannerBatches:
    """A `BatchSource` that deals every text once an epoch, `texts` of similar length at a time.

    In the first epoch texts with several calls come later: the more calls, the later. `step` is the
    number of the next batch; batches depend on it and on `seed` alone.
    """

    def __init__(self, texts: Sequence[PlannerText], at_once: int, seed: int) -> None:
        self.step = 0
        self._texts = texts
        self._at_once = at_once
        self._seed = seed
        self._epoch = -1
        self._order: list[list[int]] = []

    @property
    def steps(self) -> int:
        """The number of batches of an epoch."""
        return -(-len(self._texts) // self._at_once)

    def draw(self, rng: np.random.Generator, texts: int, longest: int) -> TokenBatch:
        """The next batch, of its own number of texts."""
        del rng, texts
        epoch, place = divmod(self.step, self.steps)
        if epoch != self._epoch:
            self._order, self._epoch = self._dealt(epoch), epoch
        self.step += 1
        return batch_of([self._texts[at].text for at in self._order[place]], longest)

    def _dealt(self, epoch: int) -> list[list[int]]:
        """The texts of each batch of an epoch."""
        rng = np.random.default_rng([self._seed, epoch])
        calls = np.array([text.calls for text in self._texts])
        delay = np.minimum((calls - 1).clip(0) * _LATER, _LATEST) if epoch == 0 else 0.0 * calls
        order = np.argsort(delay + (1.0 - delay) * rng.random(len(calls)), kind="stable")
        batches: list[list[int]] = []
        for first in range(0, len(order), _CHUNK * self._at_once):
            chunk = order[first : first + _CHUNK * self._at_once].tolist()
            chunk.sort(key=lambda at: len(self._texts[at].text.tokens))
            cut = [chunk[at : at + self._at_once] for at in range(0, len(chunk), self._at_once)]
            batches += [cut[at] for at in rng.permutation(len(cut))]
        return batches
