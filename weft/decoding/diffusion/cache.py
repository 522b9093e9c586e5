"""The port to a cache policy: which slots are read again in a pass, and which are trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.query import Choice, Kind


@dataclass(frozen=True, slots=True, eq=False)
class Feed:
    """Slots to be read, ascending, and how far is seen; `choice`: more of them, see `Query`."""

    slots: Slots
    reach: int
    kind: Kind = "denoise"
    choice: Choice | None = None


class Caching(Protocol):
    """A cache policy at work on one canvas."""

    def plan(self, canvas: Canvas) -> Feed:
        """For the next proposal: reads the slots of the window at least."""

    def note(self, canvas: Canvas, action: Action) -> None:
        """What was done to the canvas, which shows it already."""

    def persist(self, canvas: Canvas, following: range) -> Feed | None:
        """The pass over final tokens that is owed before the window becomes `following`.

        An empty `following` is the end of the text. None: no pass is owed.
        """


class CachePolicy(Protocol):
    """Settings of a cache policy. `exact`: predictions are those without a cache."""

    @property
    def exact(self) -> bool:
        """Whether predictions are what they would be without it."""

    @property
    def predicts(self) -> bool:
        """Whether the pass over a finished block also writes the first slot of the next one."""

    def begin(self, canvas: Canvas, traits: Traits) -> Caching:
        """For one canvas. Raises: `CapabilityError` for a model that it cannot serve."""
