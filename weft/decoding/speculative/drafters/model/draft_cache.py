"""A draft model with the sequences it reads, all of them in the same passes.

The model is a separate one, or the target's first layers.
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
    """Records work on a timeline as it happens."""

    def working(self, who: str, tokens: int) -> AbstractContextManager[int]:
        """Record that `who` works on `tokens` within the block; yields a stamp for `discard`."""

    def discard(self, stamp: int, tokens: int = 1) -> None:
        """Record that so many tokens of that work were discarded."""


class DraftSequence:
    """The text of a sequence, and the tokens whose keys its slot contains, from column 0.

    After a draft the slot is ahead of the text; after new text it may be behind or contain other
    tokens. Reading from the first difference repairs both: keys of accepted tokens stay, the rest
    is overwritten. The last token of a draft was never read, so a draft that is accepted whole
    leaves two tokens to read.
    """

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.largest = -1
        """The largest token of the text."""
        self._text: list[int] = []
        self._cached: list[int] = []
        self._agreed = 0

    def __len__(self) -> int:
        return len(self._text)

    @property
    def cached(self) -> tuple[int, ...]:
        """The tokens whose keys the slot contains."""
        return tuple(self._cached)

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens to the text."""
        self._text += tokens
        self.largest = max(self.largest, *tokens) if tokens else self.largest

    def unread(self, ahead: Sequence[int] = ()) -> tuple[int, list[int]]:
        """The first column and the tokens to read, to predict after the text and `ahead`."""
        while self._agreed < min(len(self._text), len(self._cached)):
            if self._text[self._agreed] != self._cached[self._agreed]:
                break
            self._agreed += 1
        wanted = [*self._text[self._agreed :], *ahead]
        same = 0
        for cached, token in zip(self._cached[self._agreed :], wanted, strict=False):
            if cached != token:
                break
            same += 1
        first = min(self._agreed + same, len(self._text) + len(ahead) - 1)
        return first, [*self._text[first:], *ahead[max(0, first - len(self._text)) :]]

    def mark_read(self, first: int, tokens: Sequence[int]) -> None:
        """Note that tokens of `unread` were read from column `first` on."""
        assert first <= len(self._cached)
        self._cached[first:] = tokens


Piece = tuple[DraftSequence, int, list[int]]
"""A sequence, the first column to read, and the tokens from there on."""

PIECE: Final = 512
"""Tokens of one sequence in a pass: memory grows with the square of it."""


class DraftNetwork(Protocol):
    """The part of `Network` that drafting uses."""

    vocabulary_size: int
    context_tokens: int

    def forward(self, spans: Sequence[Span]) -> dict[int, SpanOutput]:
        """Read the spans into their slots; the outputs by slot."""


class DraftCache:
    """A cache of `network` for draft sequences, each in a slot.

    `vocabulary` is the target's size; further draft tokens are padding. Not thread-safe. Passes are
    recorded on `timeline`, if there is one, as `who`.
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
        """Passes so far, each over all sequences that take part."""
        self.stamp = -1
        """The last pass on the timeline."""
        self.timeline = timeline
        self._who = who
        self._network = network
        self._free: list[int] = []
        self._lines = 0

    def open(self) -> DraftSequence:
        """A new sequence in a slot of its own."""
        if self._free:
            return DraftSequence(heappop(self._free))
        self._lines += 1
        return DraftSequence(self._lines - 1)

    def close(self, line: DraftSequence) -> None:
        """End a sequence and free its slot."""
        heappush(self._free, line.slot)

    def fits(self, line: DraftSequence, ahead: int) -> bool:
        """Whether the model can read the text of a sequence and `ahead` tokens more."""
        in_vocabulary = line.largest < self._network.vocabulary_size
        return in_vocabulary and len(line) > 0 and len(line) + ahead <= self._network.context_tokens

    def read(
        self, asks: Sequence[tuple[DraftSequence, Sequence[int]]]
    ) -> list[NDArray[np.float32]]:
        """Logits [vocabulary] after each sequence and the tokens ahead of it."""
        pieces = self._shortened([(line, *line.unread(ahead)) for line, ahead in asks])
        spans = [
            Span(line.slot, range(first, first + len(tokens)), tokens, 1)
            for line, first, tokens in pieces
        ]
        readings = self._pass(spans)
        for line, first, tokens in pieces:
            line.mark_read(first, tokens)
        return [readings[line.slot].logits[0, : self.vocabulary] for line, _ in asks]

    def read_trees(
        self, asks: Sequence[tuple[DraftSequence, DraftTree]]
    ) -> list[NDArray[np.float32]]:
        """Logits [1 + nodes, vocabulary] after each sequence and each node of its tree.

        Keys of the tree are dropped.
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
            line.mark_read(first, tokens)
        return [readings[line.slot].logits[:, : self.vocabulary] for line, _ in asks]

    def _shortened(self, pieces: list[Piece]) -> list[Piece]:
        """Read all pieces except for their last few tokens."""
        while long := [piece for piece in pieces if len(piece[2]) > PIECE]:
            read = [(line, first, tokens[:PIECE]) for line, first, tokens in long]
            self._pass([Span(p[0].slot, range(p[1], p[1] + PIECE), p[2], 0) for p in read])
            for line, first, tokens in read:
                line.mark_read(first, tokens)
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
    """A drafted token, with its probability, and the distribution it was sampled from, if it was.

    stamp: of its pass on the timeline. runner_up: the next likeliest token and its probability, for
    tokens that were not sampled.
    """

    token: int
    confidence: float
    distribution: TokenDistribution | None = None
    stamp: int = -1
    runner_up: tuple[int, float] = (-1, 0.0)


class DraftCacheMethod(BaseMethod):
    """Base of `SpeculativeMethod` implementations with a draft model."""

    def __init__(
        self, name: str, cache: DraftCache, nodes: int, acceptor: Acceptor | None = None
    ) -> None:
        super().__init__(name, nodes, acceptor)
        self.cache = cache

    @property
    def forwards(self) -> int:
        """Passes of the draft model so far, each over all rows that take part."""
        return self.cache.forwards

    def discard(self, lost: Sequence[DraftedToken]) -> None:
        """Record that the work on these tokens was discarded."""
        if self.cache.timeline is not None:
            for chosen in lost:
                self.cache.timeline.discard(chosen.stamp)


def load_draft_model(target: Network, folder: str) -> Network:
    """Load the model of `folder` with the target's device and precision.

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
    """The first `layers` of the target, with their own cache; 0: a third of them.

    Raises: `SpecError` for as many as the target has or more.
    """
    wanted = layers or max(1, target.layers // 3)
    if not wanted < target.layers:
        raise SpecError(
            f"a draft of {wanted} layers for a target of {target.layers}",
            hint=f"`layers` is at most {target.layers - 1}",
        )
    return target.share(layers=wanted)


def open_draft(target: Network, folder: str | None, layers: int) -> Network:
    """The model of `folder`, or else the target's first `layers`. Raises: as for either."""
    return load_draft_model(target, folder) if folder else own_layers(target, layers)
