"""How far answers that were drawn are from a fair draw among the valid ones.

Validity alone hides it: a policy that always gives the same right answer is always valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np

from weft.decoding.diffusion.oracle.answers import answers
from weft.decoding.diffusion.oracle.question import Question


def place(question: Question, answer: Sequence[int]) -> int | None:
    """Which of the answers it is, None for an invalid one.

    Questions of one operation with equally many items number their answers alike, whatever their
    names: places of different questions may be counted together. Raises: as `answers`.
    """
    table = answers(question)
    if len(answer) != table.shape[1]:
        return None
    found = np.flatnonzero((table == np.asarray(answer)).all(axis=1))
    return int(found[0]) if len(found) else None


@dataclass(frozen=True, slots=True)
class Evenness:
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


def evenness(places: Iterable[int | None], outcomes: int) -> Evenness:
    """`places` as of `place`. Raises: `ValueError` for none at all."""
    seen = list(places)
    if not seen:
        raise ValueError("no answers")
    counts = np.bincount([at for at in seen if at is not None], minlength=outcomes)
    valid = int(counts.sum())
    if not valid:
        return Evenness(len(seen), outcomes, 0.0, 1.0, 1.0, 1.0)
    expected = valid / outcomes
    variation = float(np.abs(counts / valid - 1.0 / outcomes).sum()) / 2.0
    # each count is about normal around what is expected
    spread = sqrt(2.0 / np.pi * expected * (1.0 - 1.0 / outcomes))
    chi_square = float(((counts - expected) ** 2).sum() / expected)
    return Evenness(
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
