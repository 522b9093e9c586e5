"""Chains of a draft model for several sequences: one pass a depth, for all that still grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from weft.decoding.speculative.drafters.model.cache import DraftCache
from weft.decoding.speculative.drafters.model.choice import Choice, Chosen
from weft.decoding.speculative.drafters.model.line import Line
from weft.decoding.speculative.tree import DraftTree


@dataclass(slots=True, eq=False)
class Chain:
    """What may follow a line's text and the tokens `ahead` of it: at most `most` tokens.

    `goes_on` is asked before every further token, and knows what was chosen so far. A token that
    was chosen stays: if what it is decided whether it stays, a draw would no longer have its law.
    """

    line: Line
    choice: Choice
    most: int
    ahead: tuple[int, ...] = ()
    goes_on: Callable[[Sequence[Chosen]], bool] = lambda _chosen: True
    chosen: list[Chosen] = field(default_factory=list)

    @property
    def tokens(self) -> tuple[int, ...]:
        """All beyond the text."""
        return (*self.ahead, *(chosen.token for chosen in self.chosen))

    @property
    def tree(self) -> DraftTree:
        """The chosen tokens as a draft; with their laws if they were drawn."""
        tokens = [chosen.token for chosen in self.chosen]
        laws = [chosen.law for chosen in self.chosen if chosen.law is not None]
        return DraftTree.chain(tokens, laws or None)


def grow(cache: DraftCache, chains: Sequence[Chain]) -> None:
    """Draft until no chain goes on: as many passes as the longest of them has tokens."""
    while growing := [chain for chain in chains if _may_grow(cache, chain)]:
        logits = cache.read([(chain.line, chain.tokens) for chain in growing])
        for chain, row in zip(growing, logits, strict=True):
            position = len(chain.line) + len(chain.tokens)
            chain.chosen.append(chain.choice.choose(row, position, cache.stamp))


def _may_grow(cache: DraftCache, chain: Chain) -> bool:
    room = len(chain.chosen) < chain.most and cache.fits(chain.line, len(chain.tokens))
    return room and chain.goes_on(chain.chosen)


@dataclass(frozen=True, slots=True)
class Confident:
    """Goes on until a token was less probable than `least` to the draft model itself.

    As in transformers' assisted generation.
    """

    least: float

    def __call__(self, chosen: Sequence[Chosen]) -> bool:
        return not chosen or chosen[-1].confidence >= self.least
