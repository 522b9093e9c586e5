"""A network as the target of one sequence, in a slot of its own: reads drafts, keeps the path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from weft.decoding.network.packing import Span
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Seen
from weft.decoding.speculative.law import Shaping
from weft.decoding.speculative.reading import shown, spanned
from weft.decoding.speculative.speculation import PLAIN
from weft.decoding.speculative.tree import ROOT
from weft.decoding.speculative.walk import LawAt, Walk

if TYPE_CHECKING:
    from weft.decoding.network.network import Network, Reading

_PIECE = 256


class NetworkTarget:
    """Implements `Target` over slot `slot` of `network`, whose tokens are forgotten.

    Give `begin` the prompt; then `tokens` are all of the sequence, of which the last is not read.
    """

    def __init__(self, network: Network, shaping: Shaping, slot: int = 0) -> None:
        self.tokens: list[int] = []
        self._network = network
        self._shaping = shaping
        self._slot = slot
        self._draft = PLAIN
        self._reading: Reading | None = None

    def begin(self, prompt: Sequence[int], taps: tuple[int, ...] = ()) -> Iterable[Seen]:
        """Read all but the last token of `prompt`, piece by piece; what each piece shows.

        Raises: `ValueError` for a prompt of no tokens.
        """
        if not prompt:
            raise ValueError("a prompt has at least one token")
        self.tokens = list(prompt)
        for first in range(0, len(prompt) - 1, _PIECE):
            piece = tuple(prompt[first : min(first + _PIECE, len(prompt) - 1)])
            columns = range(first, first + len(piece))
            read = self._network.forward([Span(self._slot, columns, piece, 0, taps=taps)])
            yield Seen(piece, read[self._slot].hidden)

    def verify(self, draft: Draft, taps: tuple[int, ...] = ()) -> LawAt:
        last = range(len(self.tokens) - 1, len(self.tokens))
        span = spanned(draft, self._slot, last, self.tokens[-1:], None, taps)
        self._draft, self._reading = draft, self._network.forward([span])[self._slot]
        logits = self._reading.logits
        return lambda node: self._shaping.law(logits[node - ROOT])

    def commit(self, walk: Walk) -> Seen:
        assert self._reading is not None
        root = len(self.tokens) - 1
        self._network.keep(self._slot, root + 1, walk.path)
        seen = shown(self._reading, self._draft, walk, self.tokens[-1:])
        self.tokens += walk.tokens(self._draft.tree)
        return seen
