"""The ports to what stands between a model and a canvas: guidance, verifiers, guards, in order.

Each is made for one canvas by its settings, which `Plugs` holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weft.decoding.diffusion.action import Action
    from weft.decoding.diffusion.adapter import Traits
    from weft.decoding.diffusion.canvas import Canvas, Slots
    from weft.decoding.diffusion.query import Query
    from weft.decoding.diffusion.stats import Drawn, Stats


class Guiding(Protocol):
    """Changes logits."""

    def asks(self, query: Query) -> Query | None:
        """Another query for the same pass, whose answer `guided` gets; None: not needed."""

    def guided(
        self,
        logits: NDArray[np.float32],
        slots: Slots,
        answer: NDArray[np.float32] | None,
        canvas: Canvas,
    ) -> NDArray[np.float32]:
        """New logits [slots, vocabulary]; -inf forbids, and one token of each slot is left."""


class Guidance(Protocol):
    """Settings of one."""

    def begin(self, canvas: Canvas, traits: Traits) -> Guiding:
        """For one canvas."""


class Verifying(Protocol):
    """Lets less through than was proposed, or puts something else in its place."""

    passes: int
    """Passes of another model so far, for the counters."""

    def verified(self, action: Action, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        """What is done instead."""


class Verifier(Protocol):
    """Settings of one."""

    @property
    def beyond(self) -> bool:
        """Whether it looks at predictions behind the window."""

    def begin(self, canvas: Canvas, traits: Traits) -> Verifying:
        """For one canvas."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nothing more is released. `reason` is told whoever asked, and never quotes the text."""

    reason: str


class Guarding(Protocol):
    """Reviews text before it is shown."""

    def review(self, canvas: Canvas, end: int) -> Refusal | None:
        """Slots before `end` are decided for good, and those from `canvas.released` on are new.

        Looks at prompt and answer as one text.
        """


class Guard(Protocol):
    """Settings of one."""

    def begin(self, canvas: Canvas, traits: Traits) -> Guarding:
        """For one canvas."""
