"""Votes: the majority, the shortest majority, and votes weighed by confidence."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from weft.core.errors import BuildError
from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.question import Question
from weft.reasoning.selection.selector import Selection, elect, sample_votes
from weft.reasoning.selection.vote import Ties, count_votes, shortest_majority
from weft.reasoning.thought import Sample


class Majority:
    """Self-consistency (arXiv 2203.11171): most votes. `ties` "first": to the lowest index."""

    def __init__(self, ties: Ties = "shorter") -> None:
        self._ties: Ties = ties

    @property
    def name(self) -> str:
        return "majority" if self._ties == "shorter" else "first-seen"

    async def select(self, _: ChatThread, __: Question, samples: Sequence[Sample]) -> Selection:
        return elect(samples, sample_votes(samples), lambda cast: count_votes(cast, self._ties))


class ShortestMajority:
    """Votes by c / log(mean length) (arXiv 2502.12215): prefers short agreement."""

    name = "smv"

    async def select(self, _: ChatThread, __: Question, samples: Sequence[Sample]) -> Selection:
        return elect(samples, sample_votes(samples), shortest_majority, "votes, by length,")


class ConfidenceVote:
    """The most confident `top` of all samples vote, each weighted by its confidence.

    `top` 0.1 and 0.9 are the published settings, 1.0 keeps all. A sample without a confidence has
    the weight 0, and votes only where no sample has one. Raises: `BuildError` for a `top` out of
    range.
    """

    name = "confidence"

    def __init__(self, top: float = 1.0) -> None:
        if not 0 < top <= 1:
            raise BuildError(f"top is a share above 0 and at most 1, got {top}")
        self._top = top

    async def select(self, _: ChatThread, __: Question, samples: Sequence[Sample]) -> Selection:
        read = [sample for sample in samples if sample.key is not None]
        if all(sample.confidence is None for sample in read):
            return elect(
                samples, sample_votes(read), count_votes, "votes, no confidence being known,"
            )
        ordered = sorted(read, key=lambda s: (-(s.confidence or 0.0), s.tokens, s.index))
        kept = ordered[: max(1, ceil(len(ordered) * self._top))]
        weights = {sample.index: sample.confidence or 0.0 for sample in kept}
        how = f"votes of the most confident {len(kept)}, by confidence,"
        return elect(samples, sample_votes(kept, weights), count_votes, how)
