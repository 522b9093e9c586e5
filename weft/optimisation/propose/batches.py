"""Batches of training cases, in shuffled epochs."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from weft.evaluation.case import Case
from weft.optimisation.propose.context import ProposalContext


def training_batch(context: ProposalContext, number: int, count: int) -> Sequence[Case]:
    """The batch `number` (from 0) of `count` training cases, each once; all where there are fewer.

    Each epoch is another order of all cases by the study's seed, so that a batch depends on nothing
    but the seed and its number. A batch across the end of an epoch may be shorter.
    """
    pool = list(context.train)
    if len(pool) <= count:
        return pool
    found: dict[str, Case] = {}
    for place in range(number * count, (number + 1) * count):
        epoch, at = divmod(place, len(pool))
        case = _order(pool, f"{context.seed}:epoch {epoch}")[at]
        found[case.id] = case
    return list(found.values())


def _order(pool: Sequence[Case], seed: str) -> list[Case]:
    return Random(seed).sample(pool, len(pool))  # noqa: S311 - repeatable
