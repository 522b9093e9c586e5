"""Statistics made by hand, and what a policy does with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.ports import CommitPolicy
from weft.decoding.diffusion.stats import SampledTokens, Stats
from weft.decoding.sampling import CounterRng

END, MASK = 8, 9
TRAITS = ModelTraits(10, MASK, frozenset({END}))
PROMPT = (1, 2)


def seen(
    canvas: Canvas,
    confidence: Sequence[float],
    *,
    second: Sequence[float] | None = None,
    entropy: Sequence[float] | None = None,
    drawn: Sequence[float] | None = None,
    ids: Sequence[int] | None = None,
    seed: int = 0,
) -> tuple[Stats, SampledTokens]:
    """A look at all slots of the answer; decided ones are no longer open."""
    count = len(confidence)
    slots = canvas.first + np.arange(count)
    p = np.array(confidence, dtype=np.float64)
    less = 1.0 - p if second is None else np.array(second, dtype=np.float64)
    tokens = np.arange(count, dtype=np.int64) if ids is None else np.array(ids, dtype=np.int64)
    spread = 1.0 - p if entropy is None else np.array(entropy, dtype=np.float64)
    stats = Stats(
        slots,
        canvas.undecided[slots],
        np.stack([tokens, tokens], axis=1),
        np.stack([p, less], axis=1),
        spread,
        np.zeros(count),
        np.full(count, np.nan),
    )
    return stats, SampledTokens(tokens, p if drawn is None else np.array(drawn), CounterRng(seed))


def canvas(length: int) -> Canvas:
    text = Canvas(PROMPT, length, MASK)
    text.window = range(text.first, text.length)
    return text


def chosen(policy: CommitPolicy, text: Canvas, look: tuple[Stats, SampledTokens]) -> list[int]:
    """Slots of the answer that a fresh policy would write."""
    return places(policy.begin(text, TRAITS).propose(*look, text), text)


def places(action: Action, text: Canvas) -> list[int]:
    return [int(slot) - text.first for slot in action.commit.slots]
