"""What a request says of itself to the method that drafts for it. Knows no text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from weft.decoding.sampling import SamplingParams

if TYPE_CHECKING:
    from weft.decoding.speculative.drafter import Drafter, SpeculativeMethod


GREEDY = SamplingParams(0.0)


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """How its tokens are drawn, from which `seed`, and for which node of the program (`label`).

    The seed is for drafts that are drawn at random; an unknown label is empty.
    """

    shaping: SamplingParams = GREEDY
    seed: int = 0
    label: str = ""


@runtime_checkable
class RequestAware(Protocol):
    """A method that drafts differently for different requests, beside what `SpeculativeMethod`
    says.
    """

    def begin_for(self, asked: DraftRequest) -> Drafter:
        """As `SpeculativeMethod.begin`, for a request."""


def begin_drafter(method: SpeculativeMethod, asked: DraftRequest) -> Drafter:
    """The drafter of a new sequence, told of its request where the method wants to know."""
    return method.begin_for(asked) if isinstance(method, RequestAware) else method.begin()
