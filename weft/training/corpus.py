"""Training texts: prompts with answers that the target itself wrote, as token ids.

Files contain the texts that `distil` has written so far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from weft.core.errors import InputError
from weft.decoding import tensor_file


@dataclass(frozen=True, slots=True)
class TrainingText:
    """A prompt and its answer, which begins with token number `answer`."""

    tokens: tuple[int, ...]
    answer: int


@dataclass(frozen=True, slots=True, eq=False)
class TokenBatch:
    """Texts of similar length on one device, padded.

    tokens    [texts, time]: ids, 0 after the end of a text
    there     [texts, time]: whether the token belongs to the text
    answered  [texts, time]: whether it belongs to the answer
    """

    tokens: torch.Tensor
    there: torch.Tensor
    answered: torch.Tensor

    @property
    def learnt_tokens(self) -> int:
        """Number of answer tokens."""
        return int(self.answered.sum())

    def to(self, device: torch.device) -> TokenBatch:
        """The batch on `device`."""
        return TokenBatch(self.tokens.to(device), self.there.to(device), self.answered.to(device))


class Corpus:
    """An ordered corpus with batches on `device`. Raises: `InputError` for no texts."""

    def __init__(self, texts: Sequence[TrainingText], device: torch.device | str = "cpu") -> None:
        if not texts:
            raise InputError("there are no texts to learn from")
        self.texts = tuple(texts)
        self._device = torch.device(device)
        self._by_length = sorted(range(len(texts)), key=lambda at: len(texts[at].tokens))

    @property
    def answer_tokens(self) -> int:
        """Number of answer tokens of all texts."""
        return sum(len(text.tokens) - text.answer for text in self.texts)

    def on(self, device: torch.device) -> Corpus:
        """The same texts with batches on `device`."""
        return Corpus(self.texts, device)

    def split(self, every: int) -> tuple[Corpus, Corpus]:
        """Texts to train on, and every `every`-th to evaluate. Too few: both are all texts."""
        held_out = self.texts[every - 1 :: every]
        rest = [text for at, text in enumerate(self.texts, 1) if at % every]
        if not held_out or not rest:
            return self, self
        return Corpus(rest, self._device), Corpus(held_out, self._device)

    def frequent(self, count: int, vocabulary: int) -> torch.Tensor:
        """[count]: the most frequent ids of answers, ascending; of equals the lower ids."""
        used = [token for text in self.texts for token in text.tokens[text.answer :]]
        counts = np.bincount(used, minlength=vocabulary)
        first = np.argsort(-counts, kind="stable")[:count]
        return torch.from_numpy(np.sort(first))

    def draw(self, rng: np.random.Generator, texts: int, longest: int) -> TokenBatch:
        """Texts of similar length, so that padding is small; the first `longest` tokens of each."""
        texts = min(texts, len(self.texts))
        first = int(rng.integers(len(self.texts) - texts + 1))
        return self._batch(self._by_length[first : first + texts], longest)

    def in_batches(self, texts: int, longest: int) -> list[TokenBatch]:
        """All texts in batches, sorted by length."""
        order = self._by_length
        return [
            self._batch(order[first : first + texts], longest)
            for first in range(0, len(order), texts)
        ]

    def _batch(self, numbers: Sequence[int], longest: int) -> TokenBatch:
        return batch_of([self.texts[at] for at in numbers], longest).to(self._device)


def batch_of(texts: Sequence[TrainingText], longest: int) -> TokenBatch:
    """The first `longest` tokens of each, on the CPU."""
    time = min(longest, max(len(text.tokens) for text in texts))
    tokens = torch.zeros(len(texts), time, dtype=torch.int64)
    there = torch.zeros(len(texts), time, dtype=torch.bool)
    answered = torch.zeros(len(texts), time, dtype=torch.bool)
    for row, text in enumerate(texts):
        end = min(time, len(text.tokens))
        tokens[row, :end] = torch.tensor(text.tokens[:end])
        there[row, :end] = True
        answered[row, text.answer : end] = True
    return TokenBatch(tokens, there, answered)


def write(path: Path, texts: Mapping[int, TrainingText], origin: str) -> None:
    """Replace the file by `texts`, each with the number of its prompt. Raises: `OSError`.

    `origin` identifies their source; `read` compares it.
    """
    numbers = sorted(texts)
    flat = [token for number in numbers for token in texts[number].tokens]
    tensors = {
        "prompts": _whole(numbers),
        "answers": _whole([texts[number].answer for number in numbers]),
        "ends": _whole(np.cumsum([len(texts[number].tokens) for number in numbers])),
        "tokens": _whole(flat).int(),
    }
    tensor_file.write(path, tensors, {"origin": origin})


def read(path: Path, origin: str) -> dict[int, TrainingText]:
    """The texts of a file, by the number of the prompt.

    Raises: `InputError` for a broken file, or one of another `origin`.
    """
    hint = "delete the file, or name another one"
    try:
        tensors, notes = tensor_file.read(path)
    except tensor_file.TensorFileError as error:
        raise InputError(str(error), hint=hint) from error
    if notes.get("origin") != origin:
        why = f"{path} was written from other prompts, by another model or in another way"
        raise InputError(why, hint=hint)
    try:
        return _texts(tensors)
    except (KeyError, ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"{path} holds no texts: {error}", hint=hint) from error


def _texts(tensors: Mapping[str, torch.Tensor]) -> dict[int, TrainingText]:
    prompts, answers, ends, flat = (
        tensors[name].tolist() for name in ("prompts", "answers", "ends", "tokens")
    )
    texts, start = {}, 0
    for prompt, answer, end in zip(prompts, answers, ends, strict=True):
        if not 0 < answer < end - start or end > len(flat):
            raise ValueError(f"text {prompt} ends before it begins")
        texts[prompt] = TrainingText(tuple(flat[start:end]), answer)
        start = end
    return texts


def _whole(numbers: Sequence[int] | NDArray[np.int64]) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int64)
