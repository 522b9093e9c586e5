"""The query of one row to the model in one pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.canvas import Canvas, Slots

PassKind = Literal["denoise", "whole", "persist", "unconditional", "look"]
"""For counters: a pass over the window, over all slots, of final tokens, for guidance, a probe."""
Logits = NDArray[np.float32]
"""The answer to a query: [slots, vocabulary]."""


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
    """Slots of which the adapter also reads `count`: those whose values moved most since the last
    read. `slots` are ascending and not fed. An adapter without a cache need not choose.
    """

    slots: Slots
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """Reads slots of a canvas into its row of the cache, and asks for predictions.

    feed     slots that are read, ascending; their cached keys are replaced. The other slots of
             [0, reach) are seen as they were read last
    wanted   slots to predict, ascending, all before `reach`
    reach    the first slot that is not seen
    ids      [feed] read instead of the canvas's tokens
    soft     slots of `feed` that are read as mixtures
    shadows  slots to predict as if they alone were masked; all are in `feed`
    choice   more slots to read, chosen by the adapter
    scratch  computed keys are not kept; the row's cache is seen outside `feed`
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
        """Number of tokens that are read."""
        chosen = 0 if self.choice is None else self.choice.count
        return len(self.feed) + len(self.shadows) + chosen

    @property
    def read(self) -> NDArray[np.int64]:
        """The ids that are read, [feed]."""
        return self.canvas.ids[self.feed] if self.ids is None else self.ids
