"""What a request says of itself to the method that drafts for it. Knows no text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from weft.decoding.speculative.law import Shaping

if TYPE_CHECKING:
    from weft.decoding.speculative.drafter import Drafter
    from weft.decoding.speculative.method import Method


GREEDY = Shaping(0.0)


@dataclass(frozen=True, slots=True)
class Asked:
    """How its tokens are drawn, from which `seed`, and for which node of the program (`label`).

    The seed is for drafts that are drawn at random; an unknown label is empty.
    """

    shaping: Shaping = GREEDY
    seed: int = 0
    label: str = ""


@runtime_checkable
class Informed(Protocol):
    """A method that drafts differently for different requests, beside what `Method` says."""

    def begin_for(self, asked: Asked) -> Drafter:
        """As `Method.begin`, for a request."""


def begun(method: Method, asked: Asked) -> Drafter:
    """The drafter of a new sequence, told of its request where the method wants to know."""
    return method.begin_for(asked) if isinstance(method, Informed) else method.begin()
