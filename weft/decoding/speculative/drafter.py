"""The ports of drafting: a drafter drafts for one sequence, a method for all of a target.

Drafts decide the speed, never the text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative.acceptance import AcceptedPath, Acceptor, ExactMatch, LossyAcceptor
from weft.decoding.speculative.draft import DraftProposal, DraftTree

if TYPE_CHECKING:
    import torch

    from weft.decoding.network.logit_rows import LogitRows


class Drafter(Protocol):
    """Drafts for one sequence, of which it receives every token in order."""

    @property
    def name(self) -> str:
        """Its name in reports."""

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens to the sequence: first the prompt, then committed ones."""

    def propose(self, most: int) -> DraftProposal | DraftTree:
        """A draft of at most `most` nodes after the last token; may be empty."""


def _no_rows() -> NDArray[np.float32]:
    return np.zeros((0, 0), np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class TargetOutputs:
    """Outputs of one pass of the target over a sequence.

    tokens   those read and committed, in order: a piece of the prompt, or the last token and the
             accepted path
    hidden   by layer: [tokens, width], what entered it for these tokens
    logits   [1 + nodes, vocabulary] of the root and the draft; a prompt's last piece has one row,
             the others none. Read as an array; a device copies them to the host only then
    aux      [rows, vocabulary] of the auxiliary rows; `under`: those under the last accepted node
    walk     the result of the draft; None for the prompt
    """

    tokens: tuple[int, ...]
    hidden: Mapping[int, torch.Tensor] = field(default_factory=dict)
    logits: LogitRows | NDArray[np.float32] = field(default_factory=_no_rows)
    aux: LogitRows | NDArray[np.float32] = field(default_factory=_no_rows)
    under: tuple[int, ...] = ()
    walk: AcceptedPath | None = None


@runtime_checkable
class TargetObserver(Drafter, Protocol):
    """A drafter that also receives outputs of the target's passes.

    Outputs of a prefix taken from another sequence's cache are missing.
    """

    @property
    def taps(self) -> tuple[int, ...]:
        """The layers whose input states it needs; the number of layers: the last output."""

    def see(self, outputs: TargetOutputs) -> None:
        """Receive the outputs of a pass; comes before `extend` with the resulting tokens."""


GREEDY = SamplingParams(0.0)


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """What drafts depend on: sampling, a `seed`, and the node of the program (`label`)."""

    sampling: SamplingParams = GREEDY
    seed: int = 0
    label: str = ""


UNKNOWN_REQUEST = DraftRequest()
ProposalRequest = tuple[Drafter, int]
"""A drafter of the method, and the most nodes that it may propose."""


class SpeculativeMethod(Protocol):
    """Weights, tries and threads that the drafters of one kind share."""

    @property
    def name(self) -> str:
        """Its name in reports."""

    @property
    def acceptor(self) -> Acceptor | LossyAcceptor:
        """The rule that verifies its drafts."""

    @property
    def nodes(self) -> int:
        """The most nodes of a draft; 0 is plain decoding."""

    def begin(self, request: DraftRequest = UNKNOWN_REQUEST) -> Drafter:
        """The drafter of a new sequence, before its first token."""

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        """The drafts of one step, in order; where a drafter failed, its error."""

    def end(self, drafter: Drafter) -> None:
        """The sequence of a drafter has ended; it gets no more requests."""

    def close(self) -> None:
        """Release threads, processes and memory."""


def propose_all(
    method: SpeculativeMethod, asks: Sequence[ProposalRequest]
) -> list[DraftProposal | BaseException]:
    """The drafts of `method`; if it fails, its error for each request."""
    try:
        answers = list(method.propose(asks))
    except Exception as error:  # noqa: BLE001 - returned: the caller decodes without it
        return [error] * len(asks)
    if len(answers) != len(asks):
        return [ValueError(f"{len(answers)} drafts where {len(asks)} were asked for")] * len(asks)
    return answers


def propose_each(asks: Sequence[ProposalRequest]) -> list[DraftProposal | BaseException]:
    """Drafts of independent drafters; the failure of one does not affect the others."""
    return [_proposed(drafter, most) for drafter, most in asks]


def _proposed(drafter: Drafter, most: int) -> DraftProposal | BaseException:
    try:
        return proposal_of(drafter, most)
    except Exception as error:  # noqa: BLE001 - returned: the caller decodes without it
        return error


def proposal_of(drafter: Drafter, most: int) -> DraftProposal:
    """The draft of an independent drafter. Raises: what it raises."""
    draft = drafter.propose(most)
    return DraftProposal(draft, source=drafter.name) if isinstance(draft, DraftTree) else draft


class BaseMethod:
    """Implements `SpeculativeMethod` except `begin` and `propose`; has no state of sequences."""

    def __init__(
        self, name: str, nodes: int, acceptor: Acceptor | LossyAcceptor | None = None
    ) -> None:
        self.name = name
        self.nodes = nodes
        self.acceptor = acceptor or ExactMatch()

    def end(self, drafter: Drafter) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class PerSequenceMethod(BaseMethod):
    """Implements `SpeculativeMethod` with drafters that share no state."""

    def __init__(
        self,
        name: str,
        begin: Callable[[], Drafter],
        nodes: int,
        acceptor: Acceptor | LossyAcceptor | None = None,
    ) -> None:
        super().__init__(name, nodes, acceptor)
        self._begin = begin

    def begin(self, request: DraftRequest = UNKNOWN_REQUEST) -> Drafter:  # noqa: ARG002
        return self._begin()

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        return propose_each(asks)


class MethodDrafter(ABC):
    """One sequence of a method that drafts for all of its sequences in the same passes."""

    def __init__(self, method: SpeculativeMethod) -> None:
        self.name = method.name
        self._method = method

    @abstractmethod
    def extend(self, tokens: Sequence[int]) -> None:
        """See `Drafter.extend`."""

    def propose(self, most: int) -> DraftProposal:
        """See `Drafter.propose`; for this sequence alone."""
        [draft] = self._method.propose([(self, most)])
        if isinstance(draft, BaseException):
            raise draft
        return draft
