"""What is known of an answer given some of its slots: by listing, or by a formula for shuffles.

Knows no canvas: slots are those of the answer.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.canvas import Bits, Slots
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.answers import MOST_ANSWERS, answers
from weft.decoding.diffusion.oracle.languages import language
from weft.decoding.diffusion.oracle.marginals import Table, agreeing, laid, log_marginals
from weft.decoding.diffusion.oracle.question import Question


class Law(Protocol):
    """The uniform distribution over the answers to one question."""

    def given(self, ids: NDArray[np.int64], seen: Bits, slots: Slots) -> NDArray[np.float32]:
        """[slots, vocabulary]: logits of `slots`, when `ids` [length] stand where `seen` [length].

        Where no answer agrees, nothing is known.
        """


@lru_cache(maxsize=128)
def law_of(question: Question, length: int) -> Law:
    """On a canvas of `length` slots: terminators fill it, or it holds the beginning of an answer.

    Raises: as `answers`, but not for a shuffle.
    """
    if question.operation == "shuffle" and language(question).count(question) > MOST_ANSWERS:
        return _Orders(question, length)
    return _Listed(laid(answers(question), length))


class _Listed:
    def __init__(self, table: Table) -> None:
        self._table = table

    def given(self, ids: NDArray[np.int64], seen: Bits, slots: Slots) -> NDArray[np.float32]:
        return log_marginals(agreeing(self._table, ids, seen), slots)


class _Orders:
    """Of all orders of the items: what is not used yet is equally likely in every open slot."""

    def __init__(self, question: Question, length: int) -> None:
        self._items = frozenset(question.items)
        self._ends = np.arange(length) >= len(question.items)

    def given(self, ids: NDArray[np.int64], seen: Bits, slots: Slots) -> NDArray[np.float32]:
        used = [int(token) for token in ids[seen & ~self._ends]]
        agrees = len(set(used)) == len(used) and self._items.issuperset(used)
        agrees = agrees and bool((ids[seen & self._ends] == words.EOS).all())
        left = sorted(self._items.difference(used)) if agrees else sorted(self._items)
        logits = np.full((len(slots), words.SIZE), -np.inf, dtype=np.float32)
        for row, slot in zip(logits, slots, strict=True):
            row[words.EOS if self._ends[slot] else left] = 0.0
        return logits
