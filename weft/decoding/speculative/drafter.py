"""The ports of drafting: a drafter guesses for one sequence, a method for all of a target.

Guesses decide the speed, never the text.
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


GREEDY = SamplingParams(0.0)


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """What a request says of itself: how its tokens are drawn, from which `seed`, and for which
    node of the program (`label`; empty: unknown). The seed is for drafts drawn at random.
    """

    sampling: SamplingParams = GREEDY
    seed: int = 0
    label: str = ""


UNKNOWN_REQUEST = DraftRequest()
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

    @property
    def nodes(self) -> int:
        """At most so many nodes in a draft; 0 is plain decoding."""

    def begin(self, request: DraftRequest = UNKNOWN_REQUEST) -> Drafter:
        """The drafter of a new sequence, before its first token."""

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        """The drafts of one step, in order; where a drafter failed, its error."""

    def end(self, drafter: Drafter) -> None:
        """The sequence of a drafter has ended; it is not asked again."""

    def close(self) -> None:
        """Let go of threads, processes and memory."""


def propose_all(
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
        return proposal_of(drafter, most)
    except Exception as error:  # noqa: BLE001 - told to who asked, who goes on without it
        return error


def proposal_of(drafter: Drafter, most: int) -> DraftProposal:
    """What a drafter that works for itself proposes. Raises: what it raises."""
    draft = drafter.propose(most)
    return DraftProposal(draft, source=drafter.name) if isinstance(draft, DraftTree) else draft


class BaseMethod:
    """Implements `SpeculativeMethod` but for `begin` and `propose`; holds nothing of a sequence."""

    def __init__(
        self, name: str, nodes: int, acceptor: Acceptor | LossyAcceptor | None = None
    ) -> None:
        self.name = name
        self.nodes = nodes
        self.acceptor = acceptor or ExactMatch()

    def end(self, drafter: Drafter) -> None:
        """Keeps nothing."""

    def close(self) -> None:
        """Holds nothing."""


class PerSequenceMethod(BaseMethod):
    """Implements `SpeculativeMethod` with drafters that share nothing."""

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
    """One sequence of a method that drafts for all sequences in the same passes."""

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
