"""What one row asks of the model in one pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.canvas import Canvas, Slots

PassKind = Literal["denoise", "whole", "persist", "unconditional", "look"]
"""For counting: a pass over the window, over all, of final tokens, for guidance, to check."""
Logits = NDArray[np.float32]
"""What comes of a query: [slots, vocabulary]."""


def _none() -> Slots:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class SoftSlots:
    """Slots that are read as mixtures of embeddings: `ids` and `weights` are [slots, parts]."""

    slots: Slots
    ids: NDArray[np.int64]
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RefreshCandidates:
    """Slots of which `count` are read too, those whose values have moved most since they were kept.

    `slots` are ascending and not fed. An adapter that keeps nothing need not choose.
    """

    slots: Slots
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """Reads slots of a canvas into its row of the cache, and asks for predictions.

    feed     slots that are read, ascending; what the cache held of them is replaced. The other
             slots of [0, reach) are seen as they were read last
    wanted   slots whose prediction is wanted, ascending, all before `reach`
    reach    slots from it on are not there
    ids      [feed] read instead of what the canvas holds
    soft     slots of `feed` that are read as mixtures
    shadows  slots whose prediction is wanted as if they alone were masked; all are in `feed`
    choice   more slots to read, as the adapter finds
    scratch  nothing that is computed is kept; the row's cache is seen where `feed` leaves it
    """

    canvas: Canvas
    feed: Slots
    wanted: Slots
    reach: int
    ids: NDArray[np.int64] | None = None
    soft: SoftSlots | None = None
    shadows: Slots = field(default_factory=_none)
    choice: RefreshCandidates | None = None
    scratch: bool = False
    kind: PassKind = "denoise"

    @property
    def tokens(self) -> int:
        """How many are read."""
        chosen = 0 if self.choice is None else self.choice.count
        return len(self.feed) + len(self.shadows) + chosen

    @property
    def read(self) -> NDArray[np.int64]:
        """The ids that are read, [feed]."""
        return self.canvas.ids[self.feed] if self.ids is None else self.ids
