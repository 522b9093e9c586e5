"""Sequoia trees for all rows of a step: the shape by what is measured, the tokens by a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft.decoding.speculative.accept.match import Match
from weft.decoding.speculative.accept.ratio import Ratio
from weft.decoding.speculative.asked import Asked
from weft.decoding.speculative.budget import shelf
from weft.decoding.speculative.budget.sequoia import Shape, Shapes
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Drafter
from weft.decoding.speculative.drafters.model.cache import DraftCache, Reader
from weft.decoding.speculative.drafters.model.line import Line
from weft.decoding.speculative.drafters.sequoia.children import (
    Largest,
    Siblings,
    WithoutReplacement,
)
from weft.decoding.speculative.drafters.sequoia.growing import Growing, grow
from weft.decoding.speculative.drafters.sequoia.ranks import Ranks
from weft.decoding.speculative.lengths import Always, Lengths
from weft.decoding.speculative.method import Ask
from weft.decoding.speculative.tree import DraftTree
from weft.decoding.speculative.walk import Acceptor

NAME: Final = "sequoia"
WIDTH: Final = 8
"""Children that a node has at most."""
_RENEWED_EVERY: Final = 256
_SAVED_EVERY: Final = 32


@dataclass(frozen=True, slots=True)
class Sizes:
    """Trees of up to `nodes`, up to `depth` deep. `draft_s` is what a level takes to draft,
    `target_s` what a pass of the target over so many tokens does; None: the trees of the full size,
    whatever they take.
    """

    nodes: int
    depth: int
    draft_s: float = 0.0
    target_s: Callable[[int], float] | None = None

    def shape(self, ranks: Sequence[float], nodes: int) -> Shape:
        """The best for an acceptance vector, with no more than `nodes`."""
        shapes = Shapes(ranks)
        if self.target_s is None:
            return shapes.best(nodes, self.depth)
        return shapes.fastest(nodes, self.depth, self.draft_s, self.target_s)


class SequoiaDrafter:
    """Implements `Drafter`: one sequence of `Sequoia`."""

    name = NAME

    def __init__(self, method: Sequoia, line: Line, siblings: Siblings, *, greedy: bool) -> None:
        self.line = line
        self.siblings = siblings
        self.greedy = greedy
        self.drafted = DraftTree()
        """What was proposed last, and not yet answered."""
        self._method = method

    def extend(self, tokens: Sequence[int]) -> None:
        self._method.learn(self, tokens)
        self.drafted = DraftTree()
        self.line.extend(tokens)

    def propose(self, most: int) -> Draft:
        proposed = self._method.propose([(self, most)])[0]
        if isinstance(proposed, BaseException):
            raise proposed
        return proposed


class Sequoia:
    """Implements `Method`. `network` is the draft model, `cache` its lines; `vocabulary` is the
    target's. Acceptance vectors of greedy and other sequences are apart, and kept in a file.

    Drafts are the likeliest tokens and go with `Match`; or, with `sample`, those of sequences that
    are not greedy are drawn without replacement, as published, and go with `Ratio`.
    """

    name = NAME

    def __init__(
        self,
        network: Reader,
        cache: DraftCache,
        vocabulary: int,
        sizes: Sizes,
        *,
        sample: bool = False,
        kept: Path | None = None,
    ) -> None:
        self.acceptor: Acceptor = Ratio() if sample else Match()
        self.ranks = {True: Ranks(WIDTH), False: Ranks(WIDTH)}
        """Of greedy sequences, and of the others."""
        self._network = network
        self._cache = cache
        self._vocabulary = vocabulary
        self._sizes = sizes
        self._sample = sample
        self._kept = kept
        self._shapes: dict[tuple[bool, int], tuple[int, Shape]] = {}
        self._ended = 0
        self._restore()

    @property
    def forwards(self) -> int:
        """Passes of the draft model so far; one for many rows counts once."""
        return self._cache.forwards

    def lengths(self) -> Lengths:
        return Always(self._sizes.nodes)

    def begin(self) -> Drafter:
        return self.begin_for(Asked())

    def begin_for(self, asked: Asked) -> Drafter:
        """The drafter of a new sequence; what it draws depends on the request only."""
        greedy = asked.shaping.greedy
        siblings: Siblings = Largest()
        if self._sample and not greedy:
            siblings = WithoutReplacement(asked.shaping, asked.seed, self._vocabulary)
        return SequoiaDrafter(self, self._cache.open(), siblings, greedy=greedy)

    def propose(self, asks: Sequence[Ask]) -> Sequence[Draft | BaseException]:
        drafters = [(_own(drafter), most) for drafter, most in asks]
        growing = [
            Growing(drafter.line, drafter.siblings, self._shape(drafter, most))
            for drafter, most in drafters
        ]
        try:
            grow(self._cache, self._network, growing)
        except Exception as error:  # noqa: BLE001 - told to all rows, who go on without drafts
            return [error] * len(asks)
        for (drafter, _), grown in zip(drafters, growing, strict=True):
            drafter.drafted = grown.tree
        return [Draft(grown.tree, source=NAME) for grown in growing]

    def learn(self, drafter: SequoiaDrafter, tokens: Sequence[int]) -> None:
        """A draft is answered: `tokens` were committed."""
        if drafter.drafted.tokens:
            self.ranks[drafter.greedy].observe(drafter.drafted, tokens)

    def end(self, drafter: Drafter) -> None:
        self._cache.close(_own(drafter).line)
        self._ended += 1
        if self._ended % _SAVED_EVERY == 0:
            self._save()

    def close(self) -> None:
        self._save()

    def _shape(self, drafter: SequoiaDrafter, most: int) -> Shape:
        """The one that was best when it was last looked at, which is now and then."""
        if not self._cache.fits(drafter.line, self._sizes.nodes):
            return Shape((), 1.0)
        ranks, size = self.ranks[drafter.greedy], min(most, self._sizes.nodes)
        made, shape = self._shapes.get((drafter.greedy, size), (-_RENEWED_EVERY, Shape((), 1.0)))
        if ranks.visits - made >= _RENEWED_EVERY:
            shape = self._sizes.shape(ranks.vector, size)
            self._shapes[drafter.greedy, size] = (ranks.visits, shape)
        return shape

    def _restore(self) -> None:
        found = None if self._kept is None else shelf.read(self._kept)
        if isinstance(found, dict):
            for greedy, ranks in self.ranks.items():
                ranks.restore(found.get("greedy" if greedy else "drawn"))

    def _save(self) -> None:
        if self._kept is not None and any(ranks.visits for ranks in self.ranks.values()):
            greedy, drawn = self.ranks[True].as_json(), self.ranks[False].as_json()
            shelf.write(self._kept, {"greedy": greedy, "drawn": drawn})


def _own(drafter: Drafter) -> SequoiaDrafter:
    assert isinstance(drafter, SequoiaDrafter)
    return drafter
