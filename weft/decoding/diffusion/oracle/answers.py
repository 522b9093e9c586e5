"""The table of all valid answers of a question, counted before it is made. Knows no canvas."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import CapabilityError
from weft.decoding.diffusion.oracle.languages import language
from weft.decoding.diffusion.oracle.question import Question

MOST_ANSWERS: Final = 50_000
"""More are not listed one by one; 8! = 40,320 are."""


@lru_cache(maxsize=128)
def answers(question: Question) -> NDArray[np.int16]:
    """[answers, tokens], read-only; no two are equal, all are equally likely.

    Raises: `CapabilityError` for more than `MOST_ANSWERS`; as `language`.
    """
    spoken = language(question)
    count = spoken.count(question)
    if count > MOST_ANSWERS:
        raise CapabilityError(
            f"{spoken.name} of {len(question.items)} items has {count:,} valid answers",
            hint=f"the oracle lists up to {MOST_ANSWERS:,}: take fewer items",
        )
    length = spoken.length(question)
    codes = np.fromiter(chain.from_iterable(spoken.patterns(question)), np.int16, count * length)
    table = np.array(spoken.alphabet(question), dtype=np.int16)[codes].reshape(count, length)
    table.setflags(write=False)
    return table


def drawn(question: Question, random: np.random.Generator) -> tuple[int, ...]:
    """One valid answer, uniformly. Raises: as `answers`."""
    table = answers(question)
    return tuple(int(token) for token in table[random.integers(len(table))])
