"""The port of methods: a way to draft for all sequences of one target, with what they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from weft.decoding.speculative.accept.lossy import LossyAcceptor
from weft.decoding.speculative.accept.match import Match
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Drafter
from weft.decoding.speculative.lengths import Lengths
from weft.decoding.speculative.tree import DraftTree
from weft.decoding.speculative.walk import Acceptor

Ask = tuple[Drafter, int]
"""A drafter of the method, and how many nodes it may propose."""


class Method(Protocol):
    """Weights, tries, threads: what drafters of one kind have in common."""

    @property
    def name(self) -> str:
        """What reports call it."""

    @property
    def acceptor(self) -> Acceptor | LossyAcceptor:
        """The rule that its drafts go with."""

    def lengths(self) -> Lengths:
        """How much to draft for one sequence."""

    def begin(self) -> Drafter:
        """The drafter of a new sequence, which it is told nothing of yet."""

    def propose(self, asks: Sequence[Ask]) -> Sequence[Draft | BaseException]:
        """The drafts of one step, in order; where a drafter failed, its error."""

    def end(self, drafter: Drafter) -> None:
        """The sequence of a drafter has ended; it is not asked again."""

    def close(self) -> None:
        """Let go of threads, processes and memory."""


def proposed(method: Method, asks: Sequence[Ask]) -> list[Draft | BaseException]:
    """What `method` proposes; where it fails altogether, its error for each."""
    try:
        answers = list(method.propose(asks))
    except Exception as error:  # noqa: BLE001 - told to who asked, who goes on without it
        return [error] * len(asks)
    if len(answers) != len(asks):
        return [ValueError(f"{len(answers)} drafts where {len(asks)} were asked for")] * len(asks)
    return answers


def one_by_one(asks: Sequence[Ask]) -> list[Draft | BaseException]:
    """Drafts of drafters that work each for itself; the failure of one is not its neighbours'."""
    return [_proposed(drafter, most) for drafter, most in asks]


def _proposed(drafter: Drafter, most: int) -> Draft | BaseException:
    try:
        proposed = drafter.propose(most)
    except Exception as error:  # noqa: BLE001 - told to who asked, who goes on without it
        return error
    if isinstance(proposed, DraftTree):
        return Draft(proposed, source=drafter.name)
    return proposed


class Single:
    """Implements `Method` with drafters that share nothing."""

    def __init__(
        self,
        name: str,
        begin: Callable[[], Drafter],
        lengths: Callable[[], Lengths],
        acceptor: Acceptor | LossyAcceptor | None = None,
    ) -> None:
        self.name = name
        self.acceptor = acceptor or Match()
        self._begin = begin
        self._lengths = lengths

    def lengths(self) -> Lengths:
        return self._lengths()

    def begin(self) -> Drafter:
        return self._begin()

    def propose(self, asks: Sequence[Ask]) -> Sequence[Draft | BaseException]:
        return one_by_one(asks)

    def end(self, drafter: Drafter) -> None:
        """Keeps nothing."""

    def close(self) -> None:
        """Holds nothing."""
