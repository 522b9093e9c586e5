"""The port to a policy: which slots are written after a look at the model's predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.stats import Answer, Drawn, Stats

Need = Literal["decided", "beyond", "distribution"]
"""More than the open slots of the window: its decided slots of ours, the open slots behind it, all
probabilities and how far they are from those of the pass before."""


class Commits(Protocol):
    """A policy at work on one canvas, with what it remembers of it."""

    def propose(self, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        """What to do after one pass. Depends on the row only.

        An action that changes nothing is replaced by the commit of the surest open slot.
        """


@runtime_checkable
class Looking(Commits, Protocol):
    """One that may ask again before it decides."""

    def looked(self, answers: Sequence[Answer], canvas: Canvas) -> Action:
        """The answers to `Action.look`, in order. May look again."""


@runtime_checkable
class Adjusting(Commits, Protocol):
    """One that changes the logits [slots, vocabulary] before anything is drawn from them."""

    def adjust(
        self, logits: NDArray[np.float32], slots: Slots, canvas: Canvas
    ) -> NDArray[np.float32]:
        """New logits; those given are not written to."""


@runtime_checkable
class Shadowing(Commits, Protocol):
    """One that asks how decided slots are predicted by all the others."""

    def shadows(self, canvas: Canvas) -> Slots:
        """Decided slots of the window, ascending; answered in `Stats.shadow`."""


class CommitPolicy(Protocol):
    """Settings of a policy."""

    @property
    def needs(self) -> frozenset[Need]:
        """What `Stats` has to hold."""

    def begin(self, canvas: Canvas, traits: Traits) -> Commits:
        """For one canvas."""

    def most_forwards(self, slots: int) -> int:
        """Proposals after which so many slots are decided at the latest; from there on, commits
        alone are done, at least one a pass.
        """
