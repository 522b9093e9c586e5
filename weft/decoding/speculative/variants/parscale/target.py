"""A network that reads a text in several streams, as the target of one sequence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from weft.core.errors import CapabilityError
from weft.decoding.concurrent.placement import Placement
from weft.decoding.network.packing import Span
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Seen
from weft.decoding.speculative.law import Shaping
from weft.decoding.speculative.reading import spanned
from weft.decoding.speculative.speculation import PLAIN
from weft.decoding.speculative.tree import ROOT
from weft.decoding.speculative.variants.parscale.streams import Streams
from weft.decoding.speculative.walk import LawAt, Walk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weft.decoding.network.network import Network

_PIECE = 256


class Behind(Placement):
    """A text behind `prefix` columns that are none of it: it stands as if they were not there."""

    def __init__(self, prefix: int) -> None:
        super().__init__()
        self._prefix = prefix

    def position(self, column: int) -> int:
        return column - self._prefix


class ParScaleTarget:
    """Implements `Target` over the slots from `slot` on, one for each stream.

    Every stream reads the same rows; what leaves their last layers is mixed, then normed, then read
    by the head. Give `begin` the prompt; then `tokens` are all of the sequence, of which the last
    is not read. One stream without a prefix is the plain model, and so can draft for the others.
    """

    def __init__(self, network: Network, streams: Streams, shaping: Shaping, slot: int = 0) -> None:
        self.tokens: list[int] = []
        self._network = network
        self._streams = streams
        self._shaping = shaping
        self._slots = range(slot, slot + streams.count)
        self._behind = Behind(streams.prefix)
        self._draft = PLAIN
        self._logits: NDArray[np.float32] | None = None
        for number, own in enumerate(self._slots if streams.prefix else ()):
            network.put(own, 0, streams.keys[number], streams.values[number])

    def begin(self, prompt: Sequence[int], taps: tuple[int, ...] = ()) -> Iterable[Seen]:
        """Read all but the last token of `prompt`, piece by piece; what each piece shows.

        Raises: `ValueError` for a prompt of no tokens; as `verify`.
        """
        if not prompt:
            raise ValueError("a prompt has at least one token")
        _check(taps)
        self.tokens = list(prompt)
        for first in range(0, len(prompt) - 1, _PIECE):
            piece = tuple(prompt[first : min(first + _PIECE, len(prompt) - 1)])
            columns = self._columns(first, len(piece))
            spans = [Span(slot, columns, piece, 0, self._behind) for slot in self._slots]
            self._network.forward(spans)
            yield Seen(piece)

    def verify(self, draft: Draft, taps: tuple[int, ...] = ()) -> LawAt:
        """See `Target.verify`. Raises: `CapabilityError` for a look into single layers."""
        _check(taps)
        last = self._columns(len(self.tokens) - 1, 1)
        raw = -self._network.layers
        spans = [
            replace(
                spanned(draft, slot, last, self.tokens[-1:], self._behind, (raw,)), wants_logits=0
            )
            for slot in self._slots
        ]
        readings = self._network.forward(spans)
        hidden = torch.stack([readings[slot].hidden[raw] for slot in self._slots])
        mixed = self._network.normed(self._streams.mixed(hidden))
        logits: NDArray[np.float32] = self._network.head(mixed).float().cpu().numpy()
        self._draft, self._logits = draft, logits
        return lambda node: self._shaping.law(logits[node - ROOT])

    def commit(self, walk: Walk) -> Seen:
        assert self._logits is not None
        root = self._columns(len(self.tokens) - 1, 1)[0]
        for slot in self._slots:
            self._network.keep(slot, root + 1, walk.path)
        tree = self._draft.tree
        read = (self.tokens[-1], *(tree.tokens[node] for node in walk.path))
        nodes = 1 + len(tree)
        last = walk.path[-1] if walk.path else ROOT
        under = self._draft.aux.below(last)
        self.tokens += walk.tokens(tree)
        return Seen(read, {}, self._logits[:nodes], self._logits[nodes:], under, walk)

    def _columns(self, first: int, count: int) -> range:
        """Of tokens of the text, in every stream's slot."""
        return range(self._streams.prefix + first, self._streams.prefix + first + count)


def _check(taps: Sequence[int]) -> None:
    if taps:
        raise CapabilityError(
            "a model in several streams has no single states to show",
            hint="draft with a method that looks at tokens, or with a draft model",
        )
