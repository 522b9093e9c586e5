"""A draft as what a network reads in one pass, and what the pass showed as what a drafter sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from weft.decoding.concurrent.placement import Placement
from weft.decoding.network.branches import ORDINARY, Branches
from weft.decoding.network.packing import Span
from weft.decoding.network.write import Write
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Seen
from weft.decoding.speculative.tree import ROOT
from weft.decoding.speculative.walk import Walk

if TYPE_CHECKING:
    from weft.decoding.network.network import Reading


def spanned(
    draft: Draft,
    slot: int,
    columns: Sequence[int],
    line: Sequence[int],
    placement: Placement | None,
    taps: tuple[int, ...] = (),
) -> Span:
    """What a pass reads of a draft: `line` into `columns`, whose last token is the root, then it.

    The logits are those of the root, of the nodes, then of the rows beside. `placement` is that of
    the sequence.
    """
    tree, aux = draft.tree, draft.aux
    tokens = (*line, *tree.tokens, *aux.tokens)
    wanted = 1 + len(tree) + len(aux)
    if wanted == 1:
        return Span(slot, columns, tokens, 1, placement, taps=taps)
    root = columns[-1]
    everywhere = (*columns, *range(root + 1, root + wanted))
    depths, sees = aux.depths_with(tree), aux.sees_with(tree)
    branches = Branches(root, depths, sees, placement or ORDINARY)
    return Span(slot, everywhere, tokens, wanted, branches, writes=_moved(draft, line), taps=taps)


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
