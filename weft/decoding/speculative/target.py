"""Targets: the model that a draft is for. One pass reads the last token and a draft."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import torch

from weft.decoding.network.packing import HiddenStateWrite, Span
from weft.decoding.network.visibility import ORDINARY, Placement, TreeMask
from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative.acceptance import AcceptedPath, DistributionAt
from weft.decoding.speculative.draft import ROOT, DraftProposal
from weft.decoding.speculative.drafter import TargetOutputs
from weft.decoding.speculative.speculation import NO_DRAFT

if TYPE_CHECKING:
    from weft.decoding.network.network import Network, SpanOutput


class TargetModel(Protocol):
    """A model on one sequence, which it has read except for the last token."""

    def verify(self, draft: DraftProposal, taps: tuple[int, ...] = ()) -> DistributionAt:
        """Read the last token and `draft` in one pass; the distribution after each node and `ROOT`.

        The inputs of the layers `taps` are kept for the drafter.
        """

    def commit(self, walk: AcceptedPath) -> TargetOutputs:
        """Append the path, then the bonus, which is not read yet; drop the other nodes.

        Returns the outputs of the pass.
        """


def draft_span(
    draft: DraftProposal,
    slot: int,
    columns: Sequence[int],
    line: Sequence[int],
    placement: Placement | None,
    taps: tuple[int, ...] = (),
) -> Span:
    """The span of a pass: `line` in `columns`, whose last token is the root, then the draft.

    The logits are those of the root, the nodes, then the auxiliary rows. `placement` is that of the
    sequence.
    """
    tree, aux = draft.tree, draft.aux
    tokens = (*line, *tree.tokens, *aux.tokens)
    wanted = 1 + len(tree) + len(aux)
    if wanted == 1:
        return Span(slot, columns, tokens, 1, placement, taps=taps)
    root = columns[-1]
    everywhere = (*columns, *range(root + 1, root + wanted))
    depths, sees = aux.depths_with(tree), aux.sees_with(tree)
    branches = TreeMask(root, depths, sees, placement or ORDINARY)
    return Span(slot, everywhere, tokens, wanted, branches, writes=_moved(draft, line), taps=taps)


def target_outputs(
    reading: SpanOutput, draft: DraftProposal, walk: AcceptedPath, line: Sequence[int]
) -> TargetOutputs:
    """Outputs of a pass over `line` and `draft`, of the tokens that stay."""
    nodes = 1 + len(draft.tree)
    last = walk.path[-1] if walk.path else ROOT
    return TargetOutputs(
        (*line, *(draft.tree.tokens[node] for node in walk.path)),
        _states_of(reading.hidden, len(line), walk.path),
        reading.rows.part(0, nodes),
        reading.rows.part(nodes),
        draft.aux.below(last),
        walk,
    )


def _states_of(
    hidden: Mapping[int, torch.Tensor], line: int, path: Sequence[int]
) -> Mapping[int, torch.Tensor]:
    rows = [*range(line), *(line + node for node in path)]
    return {layer: states[rows] for layer, states in hidden.items()}


def _moved(draft: DraftProposal, line: Sequence[int]) -> tuple[HiddenStateWrite, ...]:
    """The writes of a draft, with rows renumbered from the root to the span."""
    before = len(line) - 1
    return tuple(
        HiddenStateWrite(
            write.layer,
            tuple(row + before for row in write.rows),
            lambda entering, make=write.make: make(entering[before:]),  # type: ignore[misc]
        )
        for write in draft.aux.writes
    )


_PIECE = 256


class NetworkTarget:
    """Implements `TargetModel` over slot `slot` of `network`, whose tokens are dropped.

    `begin` with the prompt; then `tokens` is the whole sequence, of which the last is not read.
    """

    def __init__(self, network: Network, sampling: SamplingParams, slot: int = 0) -> None:
        self.tokens: list[int] = []
        self._network = network
        self._sampling = sampling
        self._slot = slot
        self._draft = NO_DRAFT
        self._reading: SpanOutput | None = None

    def begin(self, prompt: Sequence[int], taps: tuple[int, ...] = ()) -> Iterable[TargetOutputs]:
        """Read all but the last token of `prompt`, piece by piece; the outputs of each piece.

        Raises: `ValueError` for an empty prompt.
        """
        if not prompt:
            raise ValueError("a prompt has at least one token")
        self.tokens = list(prompt)
        for first in range(0, len(prompt) - 1, _PIECE):
            piece = tuple(prompt[first : min(first + _PIECE, len(prompt) - 1)])
            columns = range(first, first + len(piece))
            read = self._network.forward([Span(self._slot, columns, piece, 0, taps=taps)])
            yield TargetOutputs(piece, read[self._slot].hidden)

    def verify(self, draft: DraftProposal, taps: tuple[int, ...] = ()) -> DistributionAt:
        last = range(len(self.tokens) - 1, len(self.tokens))
        span = draft_span(draft, self._slot, last, self.tokens[-1:], None, taps)
        self._draft, self._reading = draft, self._network.forward([span])[self._slot]
        logits = self._reading.logits
        return lambda node: self._sampling.distribution(logits[node - ROOT])

    def commit(self, walk: AcceptedPath) -> TargetOutputs:
        assert self._reading is not None
        root = len(self.tokens) - 1
        self._network.keep(self._slot, root + 1, walk.path)
        outputs = target_outputs(self._reading, self._draft, walk, self.tokens[-1:])
        self.tokens += walk.tokens(self._draft.tree)
        return outputs
