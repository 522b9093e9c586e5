"""The drafter of one sequence, and the method that drafts for all of them in the same passes."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from weft.decoding.speculative.accept.match import Match
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Drafter, Seen
from weft.decoding.speculative.drafters.eagle.growth import Growth
from weft.decoding.speculative.drafters.eagle.line import Line
from weft.decoding.speculative.drafters.eagle.memory import Memory
from weft.decoding.speculative.drafters.eagle.model import EagleModel
from weft.decoding.speculative.lengths import Always, Lengths
from weft.decoding.speculative.method import Ask

Unread = tuple[list[int], torch.Tensor]
"""Tokens, and the features of the tokens before them."""


class Eagle:
    """Implements `Watching`. While the target has not shown what it read it drafts nothing.

    Positions count from the first token whose features were seen: only their differences matter.
    """

    name = "eagle"

    def __init__(self, model: EagleModel) -> None:
        self.taps = model.taps
        self.memory = Memory()
        self._model = model
        self._end: list[int] = []
        self._read: list[int] = []
        self._features: list[torch.Tensor] = []

    def extend(self, tokens: Sequence[int]) -> None:
        self._end = [*self._end, *tokens[-2:]][-2:]

    def see(self, seen: Seen) -> None:
        if seen.tokens:
            self._read += seen.tokens
            self._features.append(torch.cat([seen.hidden[tap] for tap in self.taps], dim=-1))

    def propose(self, most: int) -> Draft:
        return drafted(self._model, [(self, most)])[0]

    def unread(self) -> Unread | None:
        """What was seen since the last time, given once; None: nothing, or the token before the
        last is still to be read (forced tokens come unread).
        """
        read = self._read
        if not read or self._end[:-1] != read[-1:]:
            return None
        features, self._features, self._read = torch.cat(self._features), [], []
        return [*read[1:], self._end[-1]], features


def drafted(model: EagleModel, asks: Sequence[tuple[Eagle, int]]) -> list[Draft]:
    """Drafts for several sequences, in order, in the same passes."""
    drafts = [Draft()] * len(asks)
    lines: dict[int, Line] = {}
    unread: list[Unread] = []
    for at, (drafter, most) in enumerate(asks):
        given = drafter.unread() if most > 0 else None
        if given is not None:
            lines[at] = Line(drafter.memory, Growth(model.options.width), most)
            unread.append(given)
    for at, tree in zip(lines, model.draft(list(lines.values()), unread), strict=True):
        drafts[at] = Draft(tree, source=Eagle.name)
    return drafts


class EagleMethod:
    """Implements `Method`."""

    name = Eagle.name
    acceptor = Match()

    def __init__(self, model: EagleModel) -> None:
        self._model = model

    @property
    def forwards(self) -> int:
        """Passes of the drafter's layer so far; one for several sequences is one."""
        return self._model.forwards

    def lengths(self) -> Lengths:
        return Always(self._model.options.nodes)

    def begin(self) -> Eagle:
        return Eagle(self._model)

    def propose(self, asks: Sequence[Ask]) -> Sequence[Draft | BaseException]:
        return drafted(self._model, [(_own(drafter), most) for drafter, most in asks])

    def end(self, drafter: Drafter) -> None:
        """Its memory goes with it."""

    def close(self) -> None:
        """Holds nothing but weights."""


def _own(drafter: Drafter) -> Eagle:
    assert isinstance(drafter, Eagle)
    return drafter
