"""When the small model stops and the large one looks: a threshold that adjusts itself (LLMCad)."""

from __future__ import annotations

from typing import Final

_LEAST: Final = 1e-6
_MOST: Final = 0.95


class Fallback:
    """The target verifies once the probability of the whole draft is below `threshold`.

    After a draft that was right the threshold is halved; else it is divided by the draft's
    probability to the power of the share that was wrong, which raises it (arXiv 2309.04255).
    """

    def __init__(self, threshold: float = 0.01) -> None:
        self.threshold = threshold

    def learn(self, probability: float, drafted: int, right: int) -> None:
        """The target looked at `drafted` tokens of that joint probability; the first were right."""
        if not drafted:
            return
        if right == drafted:
            changed = self.threshold * 0.5
        else:
            changed = self.threshold / max(probability, _LEAST) ** ((drafted - right) / drafted)
        self.threshold = min(max(changed, _LEAST), _MOST)
