"""A draft model beside the target: drafts for all rows of a step together."""

from __future__ import annotations

from collections.abc import Sequence

from weft.decoding.speculative.accept.match import Match
from weft.decoding.speculative.accept.ratio import Ratio
from weft.decoding.speculative.asked import Asked
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Drafter
from weft.decoding.speculative.drafters.model.cache import DraftCache
from weft.decoding.speculative.drafters.model.chain import Chain, Confident, grow
from weft.decoding.speculative.drafters.model.choice import Choice, Chosen, Drawn, Likeliest
from weft.decoding.speculative.drafters.model.line import Line
from weft.decoding.speculative.law import Shaping
from weft.decoding.speculative.lengths import Always, Lengths
from weft.decoding.speculative.method import Ask
from weft.decoding.speculative.walk import Acceptor


class ModelDrafter:
    """Implements `Drafter`: one sequence of `ModelDrafts`."""

    def __init__(self, method: ModelDrafts, line: Line, choice: Choice) -> None:
        self.name = method.name
        self.line = line
        self.choice = choice
        self.drafted: Sequence[Chosen] = ()
        """What was drafted since the text last went on."""
        self._method = method

    def extend(self, tokens: Sequence[int]) -> None:
        self.line.extend(tokens)
        self._method.settle(self.drafted, tokens)
        self.drafted = ()

    def propose(self, most: int) -> Draft:
        proposed = self._method.propose([(self, most)])[0]
        if isinstance(proposed, BaseException):
            raise proposed
        return proposed


class ModelDrafts:
    """Implements `Method` (vanilla speculative decoding) with drafts of up to `most` tokens.

    The drafts are the likeliest tokens and go with `Match`; or, with `sample`, they are drawn at
    the request's own temperature, keep their laws and go with `Ratio`. A draft stops after a token
    that the draft model gave less than `confidence`. `vocabulary` is the target's.
    """

    def __init__(
        self,
        name: str,
        cache: DraftCache,
        vocabulary: int,
        most: int,
        *,
        sample: bool = False,
        confidence: float = 0.0,
    ) -> None:
        self.name = name
        self.acceptor: Acceptor = Ratio() if sample else Match()
        self._cache = cache
        self._vocabulary = vocabulary
        self._most = most
        self._sample = sample
        self._stop = Confident(confidence)

    @property
    def forwards(self) -> int:
        """Passes of the draft model so far; one for many rows counts once."""
        return self._cache.forwards

    def lengths(self) -> Lengths:
        return Always(self._most)

    def begin(self) -> Drafter:
        return self.begin_for(Asked(Shaping(1.0)))

    def begin_for(self, asked: Asked) -> Drafter:
        """The drafter of a new sequence; what it draws depends on the request only."""
        choice: Choice = Likeliest()
        if self._sample:
            choice = Drawn(asked.shaping, asked.seed, self._vocabulary)
        return ModelDrafter(self, self._cache.open(), choice)

    def propose(self, asks: Sequence[Ask]) -> Sequence[Draft | BaseException]:
        own = [(drafter, most) for drafter, most in asks if isinstance(drafter, ModelDrafter)]
        chains = [
            Chain(drafter.line, drafter.choice, most, goes_on=self._stop) for drafter, most in own
        ]
        try:
            grow(self._cache, chains)
        except Exception as error:  # noqa: BLE001 - told to all rows, who go on without drafts
            return [error] * len(chains)
        for (drafter, _), chain in zip(own, chains, strict=True):
            drafter.drafted = chain.chosen
        return [Draft(chain.tree, source=self.name) for chain in chains]

    def settle(self, drafted: Sequence[Chosen], written: Sequence[int]) -> None:
        """The text went on as drafted, or otherwise: then put on the timeline what was in vain."""
        held = 0
        while held < min(len(drafted), len(written)) and drafted[held].token == written[held]:
            held += 1
        if self._cache.timeline is not None:
            for chosen in drafted[held:]:
                self._cache.timeline.discard(chosen.stamp)

    def end(self, drafter: Drafter) -> None:
        if isinstance(drafter, ModelDrafter):
            self._cache.close(drafter.line)

    def close(self) -> None:
        """The weights go with the last reference to them."""
