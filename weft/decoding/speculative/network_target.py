"""A network as the target of one sequence, in a slot of its own: reads drafts, keeps the path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from weft.decoding.network.branches import Branches
from weft.decoding.network.layers import Write
from weft.decoding.network.packing import Span
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Seen
from weft.decoding.speculative.law import Shaping
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
        span = spanned(draft, self._slot, len(self.tokens) - 1, self.tokens[-1:], taps)
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


def spanned(
    draft: Draft, slot: int, first: int, line: Sequence[int], taps: tuple[int, ...] = ()
) -> Span:
    """What a pass reads of a draft: `line` from column `first` on, whose last token is the root.

    The logits are those of the root, of the nodes, then of the rows beside.
    """
    tree, aux = draft.tree, draft.aux
    tokens = (*line, *tree.tokens, *aux.tokens)
    columns = range(first, first + len(tokens))
    wanted = 1 + len(tree) + len(aux)
    if wanted == 1:
        return Span(slot, columns, tokens, 1, taps=taps)
    root = first + len(line) - 1
    branches = Branches(root, aux.depths_with(tree), aux.sees_with(tree))
    return Span(slot, columns, tokens, wanted, branches, writes=_moved(draft, line), taps=taps)


def shown(reading: Reading, draft: Draft, walk: Walk, line: Sequence[int]) -> Seen:
    """What a pass over `line` and `draft` showed of what stays of it."""
    nodes = 1 + len(draft.tree)
    last = walk.path[-1] if walk.path else ROOT
    return Seen(
        (*line, *(draft.tree.tokens[node] for node in walk.path)),
        _kept(reading.hidden, len(line), walk.path),
        reading.logits[:nodes],
        reading.logits[nodes:],
        draft.aux.below(last),
        walk,
    )


def _kept(
    hidden: Mapping[int, torch.Tensor], line: int, path: Sequence[int]
) -> Mapping[int, torch.Tensor]:
    rows = [*range(line), *(line + node for node in path)]
    return {layer: states[rows] for layer, states in hidden.items()}


def _moved(draft: Draft, line: Sequence[int]) -> tuple[Write, ...]:
    """The writes of a draft, whose rows count from the root, as those of a span."""
    before = len(line) - 1
    return tuple(
        Write(
            write.layer,
            tuple(row + before for row in write.rows),
            lambda entering, make=write.make: make(entering[before:]),  # type: ignore[misc]
        )
        for write in draft.aux.writes
    )
