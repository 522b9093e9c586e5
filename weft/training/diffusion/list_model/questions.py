"""Batches of generated questions and answers, whose texts all fill the same slots.

The rest of a canvas is filled with EOS, so batches need no padding.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.language import ListQuestion
from weft.decoding.diffusion.oracle.languages import LANGUAGES, random_question
from weft.decoding.diffusion.oracle.puzzles import word_class

_HELD_OUT_EVERY: Final = 10


def is_held_out(question: ListQuestion) -> bool:
    """Whether the question has held-out items, in any order. A tenth of all sets of items are."""
    text = " ".join(str(item) for item in sorted(question.items))
    return zlib.crc32(text.encode("ascii")) % _HELD_OUT_EVERY == 0


def draw_question(
    operation: str, n: int, rng: np.random.Generator, *, unseen: bool = False
) -> ListQuestion:
    """A random question for training; with `unseen`, a held-out one.

    Raises: as `random_question`.
    """
    while True:
        question = random_question(operation, n, rng)
        if is_held_out(question) == unseen:
            return question


def draw_answer(question: ListQuestion, rng: np.random.Generator) -> tuple[int, ...]:
    """A random valid answer, uniformly."""
    codes = patterns(canonical_question(question))
    alphabet = LANGUAGES[question.operation].alphabet(question)
    return tuple(alphabet[code] for code in codes[rng.integers(len(codes))])


def canonical_question(question: ListQuestion) -> ListQuestion:
    """The representative of all questions with the same answer patterns."""
    items = question.items
    if question.operation == "sort":
        order = np.argsort(np.argsort(items))
        return ListQuestion("sort", tuple(int(at) for at in order))
    if LANGUAGES[question.operation].items == "words":
        firsts = {"a": 0, "n": 0, "v": 0, "d": 0}
        for item in sorted(items):
            firsts[word_class(item)] = firsts[word_class(item)] or item
        return ListQuestion(question.operation, tuple(firsts[word_class(item)] for item in items))
    takes = LANGUAGES[question.operation].arguments
    arguments = zip(takes, question.arguments, strict=True)
    places = tuple(0 if what == "item" else token for what, token in arguments)
    return ListQuestion(question.operation, tuple(range(len(items))), places)


@lru_cache(maxsize=4096)
def patterns(question: ListQuestion) -> NDArray[np.int64]:
    """[answers, tokens]: answers as codes of the alphabet."""
    return np.array(list(LANGUAGES[question.operation].patterns(question)), dtype=np.int64)


LONGEST: Final = 40
"""Slots of the longest canvas: question, answer and rest."""
_EMPTY: Final = (0.35, 0.3, *(0.04,) * 5, *(0.01,) * 10)
"""Unnormalised weights of canvases with 0, 1, 2.. spare slots."""
_SIZES: Final = {3: 1.0, 4: 1.0, 5: 1.0, 6: 2.0}
_OFTEN: Final = {
    "copy": 0.5,
    "reverse": 0.5,
    "sort": 3.0,
    "shuffle": 4.0,
    "replace_random": 2.0,
    "insert_random": 3.0,
    "remove_random": 2.0,
    "choose_any": 0.5,
    "pair_match": 0.5,
    "latin_row": 3.0,
    "latin_square": 0.7,
    "parity": 0.5,
    "words_to_sentence": 2.0,
}
"""Weights of operations, higher for hard ones, above all those about leftover items."""


@dataclass(frozen=True, slots=True)
class QuestionMix:
    """Unnormalised weights of operations, and of numbers of items."""

    operations: Mapping[str, float] = field(
        default_factory=lambda: {name: _OFTEN.get(name, 1.0) for name in LANGUAGES}
    )
    sizes: Mapping[int, float] = field(default_factory=lambda: dict(_SIZES))


@dataclass(frozen=True, slots=True, eq=False)
class ListBatch:
    """Questions with answers.

    tokens  [texts, slots]: ids
    answer  [texts, slots]: whether the slot belongs to the answer, without the EOS after it
    end     [texts, slots]: whether it is one of the EOS after the answer
    """

    questions: tuple[ListQuestion, ...]
    tokens: torch.Tensor
    answer: torch.Tensor
    end: torch.Tensor

    @property
    def learnt_tokens(self) -> int:
        """Number of answer tokens, and of the EOS after them."""
        return int((self.answer | self.end).sum())


class ListSource:
    """A `BatchSource` of a mix of operations, without held-out questions."""

    def __init__(self, mix: QuestionMix | None = None) -> None:
        shapes = _shapes(mix or QuestionMix())
        self._shapes = [(name, n) for name, n, _, _, _ in shapes]
        weights = np.array([weight for *_, weight in shapes])
        fills = np.array([prompt + answer for _, _, prompt, answer, _ in shapes])
        empty = np.array(_EMPTY)
        self._weights = np.zeros((LONGEST + 1, len(shapes)))  # of a shape by slots of the canvas
        for at, (fill, weight) in enumerate(zip(fills, weights, strict=True)):
            room = empty[: LONGEST + 1 - fill]
            self._weights[fill : fill + len(room), at] = weight * room

    def draw(self, rng: np.random.Generator, texts: int, longest: int) -> ListBatch:
        """`texts` texts in canvases of equal length, of at most `longest` slots."""
        weights = self._weights[: longest + 1]
        sums = weights.sum(axis=1)
        slots = int(rng.choice(len(sums), p=sums / sums.sum()))
        chosen = rng.choice(len(self._shapes), texts, p=weights[slots] / sums[slots])
        tokens = np.full((texts, slots), words.EOS, dtype=np.int64)
        starts = np.zeros(texts, dtype=np.int64)
        ends = np.zeros(texts, dtype=np.int64)
        questions = []
        for row, number in enumerate(chosen):
            operation, n = self._shapes[number]
            question = draw_question(operation, n, rng)
            text = (*question.prompt, *draw_answer(question, rng))
            tokens[row, : len(text)] = text
            starts[row], ends[row] = len(question.prompt), len(text)
            questions.append(question)
        at = np.arange(slots)
        after = at >= ends[:, None]
        answer = (at >= starts[:, None]) & ~after
        parts = (torch.from_numpy(part) for part in (tokens, answer, after))
        return ListBatch(tuple(questions), *parts)


def _shapes(mix: QuestionMix) -> list[tuple[str, int, int, int, float]]:
    """Operation, items, slots of the prompt, of the answer, and weight."""
    shapes = []
    rng = np.random.default_rng(0)
    for name, often in mix.operations.items():
        language = LANGUAGES[name]
        for n, weight in mix.sizes.items():
            if language.shortest <= n <= language.longest:
                question = random_question(name, n, rng)
                prompt, answer = len(question.prompt), language.length(question)
                if prompt + answer <= LONGEST:
                    shapes.append((name, n, prompt, answer, often * weight))
    return shapes
