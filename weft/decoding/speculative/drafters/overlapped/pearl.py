"""PEARL's pace (arXiv 2408.11850): as many tokens a round as fill the time of the target's pass."""

from __future__ import annotations

from collections.abc import Sequence

from weft.decoding.speculative.drafters.model.choice import Chosen


class Pearl:
    """Implements `Pacing`: both sides wait for each other at the end of a round.

    Pre-verify: nothing is proposed, the target reads the last token, and its own next one is held
    against the first that is drafted meanwhile. Post-verify: after a hit the rest of that draft is
    read while the next one is written, of which the first token is tested in turn. So a round
    that holds yields as many tokens as were drafted, and a draft lasts as long as it is right.
    """

    waits = True

    def most(self, gamma: int) -> int:
        return gamma

    def goes_on(self, _ahead: int, _chosen: Sequence[Chosen], _misses: int) -> bool:
        return True
