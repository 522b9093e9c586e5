"""The denoising loop: ask the model, propose, filter, write, go on to the next block.

Knows neither models nor policies. Rows share passes and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from weft.decoding.diffusion.adapter import ModelAdapter
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import Denoising
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.query import Logits, Query
from weft.decoding.speculative.chance import Chance
from weft.decoding.speculative.law import Shaping

GREEDY = Shaping(0.0)


class Denoises(Protocol):
    """A row of the loop: a `Denoising`, or who stands around one."""

    @property
    def over(self) -> bool:
        """Whether nothing more will be asked."""

    def queries(self) -> tuple[Query, ...]:
        """What to ask in the next pass."""

    def settle(self, answers: Sequence[Logits]) -> None:
        """Take what came of `queries`, in their order."""


def denoise(rows: Sequence[Denoises], adapter: ModelAdapter) -> bool:
    """One pass for all rows that are not over; whether there was one."""
    asked = [(row, row.queries()) for row in rows if not row.over]
    queries = [query for _, some in asked for query in some]
    if not queries:
        return False
    answers = iter(adapter.forward(queries))
    for row, some in asked:
        row.settle([next(answers) for _ in some])
    return True


def denoised(rows: Sequence[Denoises], adapter: ModelAdapter) -> None:
    """Write all rows to their ends."""
    while not all(row.over for row in rows):
        denoise(rows, adapter)


def written(
    adapter: ModelAdapter,
    canvas: Canvas,
    plugs: Plugs,
    chance: Chance,
    shaping: Shaping = GREEDY,
) -> Denoising:
    """One text, written to its end."""
    row = Denoising(canvas, plugs, adapter.traits, chance, shaping)
    denoised([row], adapter)
    return row
