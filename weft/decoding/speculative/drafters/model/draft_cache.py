"""A draft model and the sequences it reads: every pass reads for all of them.

A model of its own, or the target's first layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import CapabilityError, ModelNotFound, SpecError
from weft.decoding.network.network import Network, SpanOutput
from weft.decoding.network.options import NetworkOptions
from weft.decoding.network.packing import Span
from weft.decoding.network.visibility import TreeMask
from weft.decoding.speculative.acceptance import Acceptor
from weft.decoding.speculative.draft import DraftTree
from weft.decoding.speculative.drafter import BaseMethod
from weft.decoding.vocabularies import check_sizes, check_tokens


class WorkRecorder(Protocol):
    """Puts down work as it happens."""

    def working(self, who: str, tokens: int) -> AbstractContextManager[int]:
        """`who` works on `tokens` within the block; yields what `discard` wants to know."""

    def discard(self, stamp: int, tokens: int = 1) -> None:
        """So many tokens of that work came to nothing."""


class DraftSequence:
    """The text of a sequence, and the tokens whose keys a slot holds, from column 0.

    After a draft the slot is ahead of the text, and after the text went on it may be behind, or
    hold other tokens. Either is put right by reading on from the first column where they differ:
    what is held of a draft that was accepted stays, and the rest is written over. The last token
    of a draft was never read, so a draft that is accepted whole leaves two tokens to be read.
    """

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.largest = -1
        """The largest token of the text."""
        self._text: list[int] = []
        self._held: list[int] = []
        self._agreed = 0

    def __len__(self) -> int:
        return len(self._text)

    @property
    def held(self) -> tuple[int, ...]:
        """The tokens whose keys the slot holds."""
        return tuple(self._held)

    def extend(self, tokens: Sequence[int]) -> None:
        """The text goes on."""
        self._text += tokens
        self.largest = max(self.largest, *tokens) if tokens else self.largest

    def unread(self, ahead: Sequence[int] = ()) -> tuple[int, list[int]]:
        """What must be read to tell what follows the text and `ahead`: first column, and tokens.

        That is one token at least, the last one.
        """
        while self._agreed < min(len(self._text), len(self._held)):
            if self._text[self._agreed] != self._held[self._agreed]:
                break
            self._agreed += 1
        wanted = [*self._text[self._agreed :], *ahead]
        same = 0
        for held, token in zip(self._held[self._agreed :], wanted, strict=False):
            if held != token:
                break
            same += 1
        first = min(self._agreed + same, len(self._text) + len(ahead) - 1)
        return first, [*self._text[first:], *ahead[max(0, first - len(self._text)) :]]

    def hold(self, first: int, tokens: Sequence[int]) -> None:
        """What `unread` told was read, or the first of it; what stood there before is gone."""
        assert first <= len(self._held)
        self._held[first:] = tokens


Piece = tuple[DraftSequence, int, list[int]]
"""A line, the first column that is to be read, and the tokens for it and those after it."""

PIECE: Final = 512
"""Tokens of one sequence a pass: a long prompt shall not need memory for the square of it."""


class DraftNetwork(Protocol):
    """What is needed of a network; `Network` is one."""

    vocabulary_size: int
    context_tokens: int

    def forward(self, spans: Sequence[Span]) -> dict[int, SpanOutput]:
        """Read the spans into their slots; what came of it by slot."""


class DraftCache:
    """Hands out lines, each with a slot of `network`, and reads for them.

    `vocabulary` is the target's size: of a larger draft vocabulary the rest is padding. Not safe to
    use from two threads at once. Passes are put on `timeline`, if there is one, as `who`.
    """

    def __init__(
        self,
        network: DraftNetwork,
        vocabulary: int,
        timeline: WorkRecorder | None = None,
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

    def open(self) -> DraftSequence:
        """A line of its own for a new sequence."""
        if self._free:
            return DraftSequence(heappop(self._free))
        self._lines += 1
        return DraftSequence(self._lines - 1)

    def close(self, line: DraftSequence) -> None:
        """The sequence has ended: its slot goes to the next."""
        heappush(self._free, line.slot)

    def fits(self, line: DraftSequence, ahead: int) -> bool:
        """Whether the model can read the text of a line and `ahead` tokens more."""
        known = line.largest < self._network.vocabulary_size
        return known and len(line) > 0 and len(line) + ahead <= self._network.context_tokens

    def read(
        self, asks: Sequence[tuple[DraftSequence, Sequence[int]]]
    ) -> list[NDArray[np.float32]]:
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

    def read_trees(
        self, asks: Sequence[tuple[DraftSequence, DraftTree]]
    ) -> list[NDArray[np.float32]]:
        """Logits [1 + nodes, vocabulary] of what follows each line and each node of its tree.

        A line holds its text after that, and nothing of the tree.
        """
        pieces = self._shortened([(line, *line.unread()) for line, _ in asks])
        spans = []
        for (line, first, tokens), (_, tree) in zip(pieces, asks, strict=True):
            columns = range(first, first + len(tokens) + len(tree))
            branches = TreeMask(len(line) - 1, tree.depths, tree.ancestors)
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

    def _pass(self, spans: Sequence[Span]) -> dict[int, SpanOutput]:
        timed = self.timeline.working(self._who, len(spans)) if self.timeline else nullcontext(-1)
        with timed as self.stamp:
            readings = self._network.forward(spans)
        self.forwards += 1
        return readings


TokenDistribution = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class DraftedToken:
    """A token, how probable the draft model finds it, and the distribution it was drawn from, if it
    was.

    stamp: the pass it came of, on the timeline. runner_up: the next likeliest token, and how
    probable that is; only known of tokens that were not drawn.
    """

    token: int
    confidence: float
    distribution: TokenDistribution | None = None
    stamp: int = -1
    runner_up: tuple[int, float] = (-1, 0.0)


class DraftCacheMethod(BaseMethod):
    """Implements the part of `SpeculativeMethod` that is the same for all who draft by a model."""

    def __init__(
        self, name: str, cache: DraftCache, nodes: int, acceptor: Acceptor | None = None
    ) -> None:
        super().__init__(name, nodes, acceptor)
        self.cache = cache

    @property
    def forwards(self) -> int:
        """Passes of the draft model so far; one for many rows counts once."""
        return self.cache.forwards

    def discard(self, lost: Sequence[DraftedToken]) -> None:
        """Put on the timeline that the work on these tokens came to nothing."""
        if self.cache.timeline is not None:
            for chosen in lost:
                self.cache.timeline.discard(chosen.stamp)


def load_draft_model(target: Network, folder: str) -> Network:
    """Read the model of `folder` for where the target is, and as precise.

    Raises: `ModelNotFound` for a folder without a model; `CapabilityError` for a broken one, or
    one with other tokens than the target's.
    """
    path = Path(folder).expanduser()
    if not (path / "config.json").is_file():
        raise ModelNotFound(
            f"there is no draft model at {folder}", hint="give `model` the folder of its weights"
        )
    where = target.embed([0])
    options = NetworkOptions(
        dtype="bfloat16" if where.element_size() == 2 else "float32", device=str(where.device)
    )
    try:
        draft = Network.load(path, options)
    except CapabilityError:
        raise
    except Exception as error:
        raise CapabilityError(f"the draft model at {folder} cannot be read: {error}") from error
    check_sizes(target.vocabulary_size, draft.vocabulary_size)
    common = min(target.vocabulary_size, draft.vocabulary_size)
    check_tokens(target.path, path, common)
    return draft


def own_layers(target: Network, layers: int) -> Network:
    """The first `layers` of the target, with a cache of their own; 0: a third of them.

    Raises: `SpecError` for as many as the target has, or more.
    """
    wanted = layers or max(1, target.layers // 3)
    if not wanted < target.layers:
        raise SpecError(
            f"a draft of {wanted} layers for a target of {target.layers}",
            hint=f"`layers` is at most {target.layers - 1}",
        )
    return target.share(layers=wanted)


def open_draft(target: Network, folder: str | None, layers: int) -> Network:
    """The model of `folder`, or without one the target's first `layers`. Raises: as they do."""
    return load_draft_model(target, folder) if folder else own_layers(target, layers)
