"""A draft model and the sequences it reads: every pass reads for all of them.

Knows no drafts: it tells what the model thinks comes next, and counts its passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from heapq import heappop, heappush
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.decoding.network.branches import Branches
from weft.decoding.network.network import Reading
from weft.decoding.network.packing import Span
from weft.decoding.speculative.drafters.model.line import Line
from weft.decoding.speculative.drafters.model.recorder import Recorder
from weft.decoding.speculative.tree import DraftTree

Piece = tuple[Line, int, list[int]]
"""A line, the first column that is to be read, and the tokens for it and those after it."""

PIECE: Final = 512
"""Tokens of one sequence a pass: a long prompt shall not need memory for the square of it."""


class Reader(Protocol):
    """What is needed of a network; `Network` is one."""

    vocabulary_size: int
    context_tokens: int

    def forward(self, spans: Sequence[Span]) -> dict[int, Reading]:
        """Read the spans into their slots; what came of it by slot."""


class DraftCache:
    """Hands out lines, each with a slot of `network`, and reads for them.

    `vocabulary` is the target's size: of a larger draft vocabulary the rest is padding. Not safe to
    use from two threads at once. Passes are put on `timeline`, if there is one, as `who`.
    """

    def __init__(
        self,
        network: Reader,
        vocabulary: int,
        timeline: Recorder | None = None,
        who: str = "draft",
    ) -> None:
        self.vocabulary = min(vocabulary, network.vocabulary_size)
        self.forwards = 0
        """Passes so far; one for many sequences counts once."""
        self.stamp = -1
        """The last pass on the timeline."""
        self.timeline = timeline
        self._who = who
        self._network = network
        self._free: list[int] = []
        self._lines = 0

    def open(self) -> Line:
        """A line of its own for a new sequence."""
        if self._free:
            return Line(heappop(self._free))
        self._lines += 1
        return Line(self._lines - 1)

    def close(self, line: Line) -> None:
        """The sequence has ended: its slot goes to the next."""
        heappush(self._free, line.slot)

    def fits(self, line: Line, ahead: int) -> bool:
        """Whether the model can read the text of a line and `ahead` tokens more."""
        known = line.largest < self._network.vocabulary_size
        return known and len(line) > 0 and len(line) + ahead <= self._network.context_tokens

    def read(self, asks: Sequence[tuple[Line, Sequence[int]]]) -> list[NDArray[np.float32]]:
        """Logits [vocabulary] of what follows each line and the tokens ahead of it."""
        pieces = self._shortened([(line, *line.unread(ahead)) for line, ahead in asks])
        spans = [
            Span(line.slot, range(first, first + len(tokens)), tokens, 1)
            for line, first, tokens in pieces
        ]
        readings = self._pass(spans)
        for line, first, tokens in pieces:
            line.hold(first, tokens)
        return [readings[line.slot].logits[0, : self.vocabulary] for line, _ in asks]

    def read_trees(self, asks: Sequence[tuple[Line, DraftTree]]) -> list[NDArray[np.float32]]:
        """Logits [1 + nodes, vocabulary] of what follows each line and each node of its tree.

        A line holds its text after that, and nothing of the tree.
        """
        pieces = self._shortened([(line, *line.unread()) for line, _ in asks])
        spans = []
        for (line, first, tokens), (_, tree) in zip(pieces, asks, strict=True):
            columns = range(first, first + len(tokens) + len(tree))
            branches = Branches(len(line) - 1, tree.depths, tree.ancestors)
            read = [*tokens, *tree.tokens]
            spans.append(Span(line.slot, columns, read, 1 + len(tree), branches))
        readings = self._pass(spans)
        for line, first, tokens in pieces:
            line.hold(first, tokens)
        return [readings[line.slot].logits[:, : self.vocabulary] for line, _ in asks]

    def _shortened(self, pieces: list[Piece]) -> list[Piece]:
        """Read of every piece all but the last few tokens."""
        while long := [piece for piece in pieces if len(piece[2]) > PIECE]:
            read = [(line, first, tokens[:PIECE]) for line, first, tokens in long]
            self._pass([Span(p[0].slot, range(p[1], p[1] + PIECE), p[2], 0) for p in read])
            for line, first, tokens in read:
                line.hold(first, tokens)
            pieces = [
                (line, first + PIECE, tokens[PIECE:])
                if len(tokens) > PIECE
                else (line, first, tokens)
                for line, first, tokens in pieces
            ]
        return pieces

    def _pass(self, spans: Sequence[Span]) -> dict[int, Reading]:
        timed = self.timeline.working(self._who, len(spans)) if self.timeline else nullcontext(-1)
        with timed as self.stamp:
            readings = self._network.forward(spans)
        self.forwards += 1
        return readings
