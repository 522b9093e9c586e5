"""The port of drafters: who guesses what comes next. Guesses decide the speed, never the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from weft.decoding.speculative.acceptance import AcceptedPath, Acceptor, ExactMatch, LossyAcceptor
from weft.decoding.speculative.draft import DraftProposal, DraftTree

if TYPE_CHECKING:
    import torch


class Drafter(Protocol):
    """Guesses for one sequence. It is told every token of it, in order, and nothing else."""

    @property
    def name(self) -> str:
        """What reports call it."""

    def extend(self, tokens: Sequence[int]) -> None:
        """The sequence goes on with `tokens`: first the prompt, then what is committed."""

    def propose(self, most: int) -> DraftProposal | DraftTree:
        """A draft of what follows the last token, of at most `most` nodes; perhaps none."""


@dataclass(frozen=True, slots=True, eq=False)
class TargetOutputs:
    """What one pass of the target showed of a sequence.

    tokens   those it read that stay, in order: a piece of the prompt, or the last token and the
             accepted path
    hidden   by layer: [tokens, width], what entered it for these tokens
    logits   [1 + nodes, vocabulary] of the root and the draft; a prompt's last piece has one row,
             the others none
    aux      [rows, vocabulary] of the rows beside the draft; `under`: those under the last accepted
             node
    walk     what came of the draft; None for the prompt
    """

    tokens: tuple[int, ...]
    hidden: Mapping[int, torch.Tensor] = field(default_factory=dict)
    logits: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    aux: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    under: tuple[int, ...] = ()
    walk: AcceptedPath | None = None


@runtime_checkable
class TargetObserver(Drafter, Protocol):
    """A drafter that also looks at the target's passes.

    What was taken over from another sequence's cache is never seen: it starts later then.
    """

    @property
    def taps(self) -> tuple[int, ...]:
        """The layers whose entering states it wants; the number of layers: what leaves the last."""

    def see(self, seen: TargetOutputs) -> None:
        """A pass has been made. Comes before `extend` with the tokens that came of it."""


class DraftLength(Protocol):
    """How much to draft, from the past only."""

    def length(self) -> int:
        """At most so many nodes now."""

    def observe(self, drafted: int, accepted: int) -> None:
        """What came of the last draft: how deep it was, and how far it was accepted."""


@dataclass(frozen=True, slots=True)
class FixedDraftLength:
    """Implements `DraftLength`: the same length at every step; 0 is plain decoding."""

    nodes: int

    def length(self) -> int:
        return self.nodes

    def observe(self, drafted: int, accepted: int) -> None:
        """Learns nothing."""


ProposalRequest = tuple[Drafter, int]
"""A drafter of the method, and how many nodes it may propose."""


class SpeculativeMethod(Protocol):
    """Weights, tries, threads: what drafters of one kind have in common."""

    @property
    def name(self) -> str:
        """What reports call it."""

    @property
    def acceptor(self) -> Acceptor | LossyAcceptor:
        """The rule that its drafts go with."""

    def lengths(self) -> DraftLength:
        """How much to draft for one sequence."""

    def begin(self) -> Drafter:
        """The drafter of a new sequence, which it is told nothing of yet."""

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        """The drafts of one step, in order; where a drafter failed, its error."""

    def end(self, drafter: Drafter) -> None:
        """The sequence of a drafter has ended; it is not asked again."""

    def close(self) -> None:
        """Let go of threads, processes and memory."""


def proposed(
    method: SpeculativeMethod, asks: Sequence[ProposalRequest]
) -> list[DraftProposal | BaseException]:
    """What `method` proposes; where it fails altogether, its error for each."""
    try:
        answers = list(method.propose(asks))
    except Exception as error:  # noqa: BLE001 - told to who asked, who goes on without it
        return [error] * len(asks)
    if len(answers) != len(asks):
        return [ValueError(f"{len(answers)} drafts where {len(asks)} were asked for")] * len(asks)
    return answers


def propose_each(asks: Sequence[ProposalRequest]) -> list[DraftProposal | BaseException]:
    """Drafts of drafters that work each for itself; the failure of one is not its neighbours'."""
    return [_proposed(drafter, most) for drafter, most in asks]


def _proposed(drafter: Drafter, most: int) -> DraftProposal | BaseException:
    try:
        proposed = drafter.propose(most)
    except Exception as error:  # noqa: BLE001 - told to who asked, who goes on without it
        return error
    if isinstance(proposed, DraftTree):
        return DraftProposal(proposed, source=drafter.name)
    return proposed


class PerSequenceMethod:
    """Implements `SpeculativeMethod` with drafters that share nothing."""

    def __init__(
        self,
        name: str,
        begin: Callable[[], Drafter],
        lengths: Callable[[], DraftLength],
        acceptor: Acceptor | LossyAcceptor | None = None,
    ) -> None:
        self.name = name
        self.acceptor = acceptor or ExactMatch()
        self._begin = begin
        self._lengths = lengths

    def lengths(self) -> DraftLength:
        return self._lengths()

    def begin(self) -> Drafter:
        return self._begin()

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        return propose_each(asks)

    def end(self, drafter: Drafter) -> None:
        """Keeps nothing."""

    def close(self) -> None:
        """Holds nothing."""
