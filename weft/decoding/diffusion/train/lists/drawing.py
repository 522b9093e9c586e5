"""Random questions with one of their answers, drawn uniformly, and which of them are held out.

Knows no tokens of a canvas but those of question and answer.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.oracle.asking import asked
from weft.decoding.diffusion.oracle.languages import LANGUAGES
from weft.decoding.diffusion.oracle.puzzles import kind
from weft.decoding.diffusion.oracle.question import Question

_HELD_OUT_EVERY: Final = 10


def held_out(question: Question) -> bool:
    """Whether no training sees a question about these items, in whatever order. A tenth are."""
    text = " ".join(str(item) for item in sorted(question.items))
    return zlib.crc32(text.encode("ascii")) % _HELD_OUT_EVERY == 0


def drawn_question(
    operation: str, n: int, chance: np.random.Generator, *, unseen: bool = False
) -> Question:
    """A question of those that are learnt from; with `unseen`, of those held out.

    Raises: as `asked`.
    """
    while True:
        question = asked(operation, n, chance)
        if held_out(question) == unseen:
            return question


def drawn_answer(question: Question, chance: np.random.Generator) -> tuple[int, ...]:
    """One of its valid answers, all equally likely."""
    codes = patterns(alike(question))
    alphabet = LANGUAGES[question.operation].alphabet(question)
    return tuple(alphabet[code] for code in codes[chance.integers(len(codes))])


def alike(question: Question) -> Question:
    """The question that stands for all whose answers are built in the same way.

    It differs in the names only, where their order or kind does not matter.
    """
    items = question.items
    if question.operation == "sort":
        order = np.argsort(np.argsort(items))
        return Question("sort", tuple(int(at) for at in order))
    if LANGUAGES[question.operation].items == "words":
        firsts = {"a": 0, "n": 0, "v": 0, "d": 0}
        for item in sorted(items):
            firsts[kind(item)] = firsts[kind(item)] or item
        return Question(question.operation, tuple(firsts[kind(item)] for item in items))
    takes = LANGUAGES[question.operation].arguments
    arguments = zip(takes, question.arguments, strict=True)
    places = tuple(0 if what == "item" else token for what, token in arguments)
    return Question(question.operation, tuple(range(len(items))), places)


@lru_cache(maxsize=4096)
def patterns(question: Question) -> NDArray[np.int64]:
    """[answers, tokens]: codes into the alphabet."""
    return np.array(list(LANGUAGES[question.operation].patterns(question)), dtype=np.int64)
