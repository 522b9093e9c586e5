"""What passes of a target take, by how much they read and how much is there. Measured."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from weft.decoding.speculative.budget.curve import Curve


class Costs:
    """Seconds of a pass, from `measured`: by context length, by the number of tokens it reads.

    Between two context lengths times are straight; outside they are those of the nearest.

    Raises: `ValueError` without a context, or for times that are none.
    """

    def __init__(self, measured: Mapping[int, Mapping[int, float]]) -> None:
        if not measured:
            raise ValueError("no pass was measured")
        self.measured = {context: dict(measured[context]) for context in sorted(measured)}
        self._contexts = list(self.measured)
        self._curves = [Curve(times) for times in self.measured.values()]

    def second(self, context: int) -> float:
        """Seconds of a pass over one token, that many tokens into a sequence."""
        return sum(share * self.measured[at][1] for at, share in self._between(context))

    def curve(self, context: int) -> Curve:
        """v(n) that many tokens into a sequence."""
        curves = dict(zip(self._contexts, self._curves, strict=True))
        near = self._between(context)
        if len(near) == 1:
            return curves[near[0][0]]
        sizes = sorted({size for at, _ in near for size in self.measured[at]})
        return Curve(
            {
                size: sum(share * self.measured[at][1] * curves[at](size) for at, share in near)
                for size in sizes
            }
        )

    def _between(self, context: int) -> list[tuple[int, float]]:
        """The measured contexts around this one, with their shares."""
        right = bisect_left(self._contexts, context)
        if right == 0 or right == len(self._contexts):
            return [(self._contexts[max(right - 1, 0)], 1.0)]
        low, high = self._contexts[right - 1 : right + 1]
        share = (context - low) / (high - low)
        return [(high, 1.0)] if share == 1.0 else [(low, 1.0 - share), (high, share)]
