"""What a step that writes slots independently costs, counted over all answers of a question.

The same as the closed forms, for languages that have none too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb, erfc, sqrt

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.oracle.language import ListQuestion
from weft.decoding.diffusion.oracle.languages import answer_table

Table = NDArray[np.int16]


def one_step(question: ListQuestion) -> float:
    """The probability that slots drawn from their marginals, all at once, are a valid answer.

    Raises: as `answer_table`.
    """
    return float(np.exp(_log_product(answer_table(question))).sum())


def correlation(question: ListQuestion) -> float:
    """Nats between the joint law of the answer and the product of its marginals.

    Raises: as `answer_table`.
    """
    table = answer_table(question)
    # the mean of -log p over the table is the sum of the entropies of the slots
    return max(0.0, float(-_log_product(table).mean() - np.log(len(table))))


def random_order(question: ListQuestion, sizes: Sequence[int]) -> float:
    """Validity of an answer that is written `sizes` slots at a time, in random order.

    Exact: over all orders and all that can be drawn, which takes small questions. Raises: as
    `answer_table`; `ValueError` where the sizes are not those of an answer.
    """
    table = answer_table(question)
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


def answer_index(question: ListQuestion, answer: Sequence[int]) -> int | None:
    """Which of the answers it is, None for an invalid one.

    Questions of one operation with equally many items number their answers alike, whatever their
    names: places of different questions may be counted together. Raises: as `answer_table`.
    """
    table = answer_table(question)
    if len(answer) != table.shape[1]:
        return None
    found = np.flatnonzero((table == np.asarray(answer)).all(axis=1))
    return int(found[0]) if len(found) else None


@dataclass(frozen=True, slots=True)
class UniformityTest:
    """Of answers among `outcomes` valid ones.

    valid            the share of valid answers
    total_variation  of the valid ones from the uniform law: 0 to 1
    by_chance        about what a fair draw of as many answers would show
    p                the chance that a fair draw looks less even (chi square): small means biased
    """

    drawn: int
    outcomes: int
    valid: float
    total_variation: float
    by_chance: float
    p: float


def uniformity(places: Iterable[int | None], outcomes: int) -> UniformityTest:
    """`places` as of `answer_index`. Raises: `ValueError` for none at all."""
    seen = list(places)
    if not seen:
        raise ValueError("no answers")
    counts = np.bincount([at for at in seen if at is not None], minlength=outcomes)
    valid = int(counts.sum())
    if not valid:
        return UniformityTest(len(seen), outcomes, 0.0, 1.0, 1.0, 1.0)
    expected = valid / outcomes
    variation = float(np.abs(counts / valid - 1.0 / outcomes).sum()) / 2.0
    # each count is about normal around what is expected
    spread = sqrt(2.0 / np.pi * expected * (1.0 - 1.0 / outcomes))
    chi_square = float(((counts - expected) ** 2).sum() / expected)
    return UniformityTest(
        len(seen),
        outcomes,
        valid / len(seen),
        variation,
        min(1.0, outcomes * spread / valid / 2.0),
        _tail(chi_square, outcomes - 1),
    )


def _tail(chi_square: float, freedom: int) -> float:
    """P(a chi square variable is larger), by the cube root (Wilson and Hilferty 1931)."""
    if freedom == 0:
        return 1.0
    part = 2.0 / (9.0 * freedom)
    return 0.5 * erfc((np.cbrt(chi_square / freedom) - 1.0 + part) / sqrt(2.0 * part))
