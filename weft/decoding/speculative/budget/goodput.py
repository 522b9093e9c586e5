"""The length of a chain that is expected to pay most (TurboSpec, arXiv 2406.14066).

Tokens a step over the time of the step, both as expected: the chance of every depth from what was
tested there lately, the times from measurements.
"""

from __future__ import annotations

from typing import Final

from weft.decoding.speculative.budget.curve import Curve

_HOPE: Final = 0.7
"""The chance of a depth that was never tested."""


class Goodput:
    """Chooses lengths from 0, which is plain decoding, to `longest`.

    `draft_cost` is what one drafted token takes, in passes of the target over one. `memory` is how
    many tests the running chance of a depth remembers. Every `explore` steps at least half of
    `longest` is drafted, so that a text that turns predictable is noticed.
    """

    def __init__(
        self,
        curve: Curve,
        draft_cost: float,
        longest: int,
        *,
        memory: float = 16.0,
        explore: int = 32,
    ) -> None:
        self._curve = curve
        self._draft_cost = draft_cost
        self._longest = longest
        self._rate = 1.0 / memory
        self._explore = explore
        self._chances = [_HOPE] * longest
        self._steps = 0

    @property
    def chances(self) -> tuple[float, ...]:
        """Of each depth: how likely a token there is accepted, given that those before it are."""
        return tuple(self._chances)

    def length(self) -> int:
        """How many tokens to draft now. Depends on the past only, so the text keeps its law."""
        self._steps += 1
        best = max(range(self._longest + 1), key=self.expected)
        if self._steps % self._explore == 0:
            return max(best, (self._longest + 1) // 2)
        return best

    def expected(self, length: int) -> float:
        """Tokens a pass over one token's time, when so many are drafted."""
        tokens, survives = 1.0, 1.0
        for chance in self._chances[:length]:
            survives *= chance
            tokens += survives
        return tokens / (length * self._draft_cost + self._curve(length + 1))

    def observe(self, drafted: int, accepted: int) -> None:
        """Of `drafted` tokens the first `accepted` were accepted; the one after them was tested."""
        for depth in range(min(drafted, accepted + 1, self._longest)):
            held = 1.0 if depth < accepted else 0.0
            self._chances[depth] += self._rate * (held - self._chances[depth])
