"""What stands in the slots of an answer on average over all valid answers that agree with the rest.

A loss against these averages is the expectation of the loss against answers that are drawn, without
the noise of drawing. Knows no model.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.oracle.languages import DETERMINISTIC, LANGUAGES
from weft.decoding.diffusion.oracle.question import Question
from weft.decoding.diffusion.train.lists.drawing import alike, patterns

Bits = NDArray[np.bool_]


def expected(
    question: Question, answer: NDArray[np.int64], decided: Bits
) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
    """The tokens that may stand there, [tokens], and how likely each is, [slots, tokens].

    answer   [slots] a valid one
    decided  [slots] which of it are known

    None for an operation with one valid answer.
    """
    if question.operation in DETERMINISTIC:
        return None
    alphabet = np.array(LANGUAGES[question.operation].alphabet(question), dtype=np.int64)
    same = alike(question)
    hot = _hot(same)  # [answers, slots, tokens]
    alphabet = alphabet[: hot.shape[2]]
    if not decided.any():
        return alphabet, _average(same)
    code = np.empty(alphabet.max() + 1, dtype=np.int64)
    code[alphabet] = np.arange(len(alphabet))
    agree = (patterns(same)[:, decided] == code[answer[decided]]).all(axis=1)
    return alphabet, hot[agree].mean(axis=0, dtype=np.float32)


@lru_cache(maxsize=1024)
def _hot(same: Question) -> NDArray[np.float32]:
    codes = patterns(same)
    return np.eye(int(codes.max()) + 1, dtype=np.float32)[codes]


@lru_cache(maxsize=1024)
def _average(same: Question) -> NDArray[np.float32]:
    found: NDArray[np.float32] = _hot(same).mean(axis=0, dtype=np.float32)
    return found
