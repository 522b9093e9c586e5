"""What a step that writes slots independently costs, counted over all answers of a question.

The same as the closed forms, for languages that have none too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.oracle.answers import answers
from weft.decoding.diffusion.oracle.question import Question

Table = NDArray[np.int16]


def one_step(question: Question) -> float:
    """The probability that slots drawn from their marginals, all at once, are a valid answer.

    Raises: as `answers`.
    """
    return float(np.exp(_log_product(answers(question))).sum())


def correlation(question: Question) -> float:
    """Nats between the joint law of the answer and the product of its marginals.

    Raises: as `answers`.
    """
    table = answers(question)
    # the mean of -log p over the table is the sum of the entropies of the slots
    return max(0.0, float(-_log_product(table).mean() - np.log(len(table))))


def random_order(question: Question, sizes: Sequence[int]) -> float:
    """Validity of an answer that is written `sizes` slots at a time, in random order.

    Exact: over all orders and all that can be drawn, which takes small questions. Raises: as
    `answers`; `ValueError` where the sizes are not those of an answer.
    """
    table = answers(question)
    if sum(sizes) != table.shape[1] or min(sizes) < 1:
        raise ValueError(f"{sizes} slots of an answer of {table.shape[1]}")

    @cache
    def valid(rows: tuple[int, ...], open_: tuple[int, ...], step: int) -> float:
        if not open_:
            return 1.0
        left, size = table[list(rows)], sizes[step]
        total = 0.0
        for slots in combinations(open_, size):
            rest = tuple(slot for slot in open_ if slot not in slots)
            law = np.exp(_log_product(left[:, slots]))
            groups: dict[tuple[int, ...], list[int]] = {}
            for at, written in enumerate(left[:, slots].tolist()):
                groups.setdefault(tuple(written), []).append(at)
            for members in groups.values():
                after = valid(tuple(rows[at] for at in members), rest, step + 1)
                total += float(law[members[0]]) * after
        return total / comb(len(open_), size)

    return valid(tuple(range(len(table))), tuple(range(table.shape[1])), 0)


def _log_product(table: Table) -> NDArray[np.float64]:
    """[answers]: the sum of the logarithms of the marginals of each answer's tokens."""
    total = np.zeros(len(table))
    for column in table.T:
        _, where, counts = np.unique(column, return_inverse=True, return_counts=True)
        total += np.log(counts / len(table))[where]
    return total
