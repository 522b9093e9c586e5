"""The denoising loop: ask the model, propose, filter, write, go on to the next block.

Knows neither models nor policies. Rows share passes and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.decoding.diffusion.adapter import ModelAdapter
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import Denoising
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.speculative.chance import Chance
from weft.decoding.speculative.law import Shaping

GREEDY = Shaping(0.0)


def denoise(rows: Sequence[Denoising], adapter: ModelAdapter) -> None:
    """One pass for all rows that are not over."""
    asked = [(row, row.queries()) for row in rows if not row.over]
    if not asked:
        return
    answers = iter(adapter.forward([query for _, queries in asked for query in queries]))
    for row, queries in asked:
        row.settle([next(answers) for _ in queries])


def denoised(rows: Sequence[Denoising], adapter: ModelAdapter) -> None:
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
