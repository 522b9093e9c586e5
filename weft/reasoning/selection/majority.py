"""Plain votes: the majority, and the shortest majority. Asks nobody."""

from __future__ import annotations

from collections.abc import Sequence

from weft.reasoning.question import Question
from weft.reasoning.selection.ballots import ballots, elect
from weft.reasoning.selection.selector import Selected
from weft.reasoning.selection.vote import Ties, shortest_majority, tally
from weft.reasoning.thought import Sample
from weft.reasoning.thread.asking import Asking


class Majority:
    """Self-consistency (arXiv 2203.11171): most votes. `ties` "first": to the lowest index."""

    def __init__(self, ties: Ties = "shorter") -> None:
        self._ties: Ties = ties

    @property
    def name(self) -> str:
        """See `Selector.name`."""
        return "majority" if self._ties == "shorter" else "first-seen"

    async def select(self, _: Asking, __: Question, samples: Sequence[Sample]) -> Selected:
        """See `Selector.select`."""
        return elect(samples, ballots(samples), lambda cast: tally(cast, self._ties))


class ShortestMajority:
    """Votes by c / log(mean length) (arXiv 2502.12215): what is agreed on briefly."""

    name = "smv"

    async def select(self, _: Asking, __: Question, samples: Sequence[Sample]) -> Selected:
        """See `Selector.select`."""
        return elect(samples, ballots(samples), shortest_majority, "votes, by length,")
