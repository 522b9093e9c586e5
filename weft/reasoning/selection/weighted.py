"""Votes that weigh as much as their samples' confidence (DeepConf offline, arXiv 2508.15260)."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from weft.core.errors import BuildError
from weft.reasoning.question import Question
from weft.reasoning.selection.ballots import ballots, elect
from weft.reasoning.selection.selector import Selected
from weft.reasoning.selection.vote import tally
from weft.reasoning.thought import Sample
from weft.reasoning.thread.asking import Asking


class ConfidenceWeighted:
    """The most confident `top` of all samples vote, each with its confidence as the weight.

    `top` 0.1 and 0.9 are the published settings, 1.0 keeps all. A sample without a confidence has
    the weight 0, and votes only where none has one. Raises: `BuildError` for a `top` out of range.
    """

    name = "confidence"

    def __init__(self, top: float = 1.0) -> None:
        if not 0 < top <= 1:
            raise BuildError(f"top is a share above 0 and at most 1, got {top}")
        self._top = top

    async def select(self, _: Asking, __: Question, samples: Sequence[Sample]) -> Selected:
        """See `Selector.select`."""
        read = [sample for sample in samples if sample.key is not None]
        if all(sample.confidence is None for sample in read):
            return elect(samples, ballots(read), tally, "votes, no confidence being known,")
        ordered = sorted(read, key=lambda s: (-(s.confidence or 0.0), s.tokens, s.index))
        kept = ordered[: max(1, ceil(len(ordered) * self._top))]
        weights = {sample.index: sample.confidence or 0.0 for sample in kept}
        how = f"votes of the most confident {len(kept)}, by confidence,"
        return elect(samples, ballots(kept, weights), tally, how)
