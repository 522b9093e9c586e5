"""Which slots of a text are open while it is learnt. Knows no tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """Which slots of a text are open, and how much each of them counts: both [slots]."""

    hidden: Bits
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Noising:
    """How noise is drawn: every block has a level of its own, the share of its slots that is open.

    complement  a second noise opens the other slots, so that each is learnt once for each draw
                (Fast-dLLM v2, arXiv 2509.26328)
    weighted    a slot counts by one over the level, as the bound on the likelihood has it (LLaDA,
                arXiv 2502.09992); levels are from 0.1 to 0.9 then. Else all count alike
    """

    complement: bool = True
    weighted: bool = False

    def drawn(
        self,
        slots: int,
        answer: int,
        block: int,
        chance: np.random.Generator,
        level: float | None = None,
    ) -> list[Noise]:
        """Of a text of whole blocks whose slots from `answer` on are learnt. `level`: of all."""
        ours = np.arange(slots) >= answer
        low, high = (0.1, 0.9) if self.weighted else (0.0, 1.0)
        levels = chance.uniform(low, high, slots)[np.arange(slots) // block]
        levels = levels if level is None else np.full(slots, level)
        hidden = chance.uniform(size=slots) < levels
        noises = [(hidden, levels), (~hidden, 1.0 - levels)][: 1 + self.complement]
        return [
            Noise(opened & ours, 1.0 / of if self.weighted else np.ones(slots))
            for opened, of in noises
        ]
