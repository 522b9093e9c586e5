"""What to speed up first: the node code whose time decided how long a run took.

Judges a trace as it was recorded; `weft.engine.simulate` replays runs under other conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from weft.engine.bound import least_wall_s
from weft.engine.critical import Share
from weft.engine.trace import Trace

WORTH_A_WORD = 0.05
"""The part of the wall time from which on something is worth telling."""
_MOST_TRIED = 10


@dataclass(frozen=True, slots=True)
class SpeedAdvice:
    """What the run would save if the nodes of the family `target` took no time.

    `fraction` is that of the wall time; `at_least_s` is what the run would need even so.
    """

    target: str
    saves_s: float
    fraction: float
    at_least_s: float


def speed_advice(trace: Trace, found: Sequence[Share]) -> SpeedAdvice | None:
    """The family of nodes, of the shares `found`, that would save most.

    None where no family would save a twentieth, and where one is as good as the whole run.
    """
    if sum(trace.busy_s(node) > 0 for node in trace.nodes.values()) < 2:
        return None
    worth = (s for s in found if s.doing == "work" and s.fraction >= WORTH_A_WORD)
    tried = [_advice(trace, share) for share in islice(worth, _MOST_TRIED)]
    best = max(tried, key=lambda advice: advice.saves_s, default=None)
    if best is None or not WORTH_A_WORD <= best.fraction <= 1 - WORTH_A_WORD:
        return None
    return best


def _advice(trace: Trace, share: Share) -> SpeedAdvice:
    at_least_s = least_wall_s(trace, share.target)
    saves_s = max(0.0, min(share.seconds, trace.wall_s - at_least_s))
    return SpeedAdvice(share.target, saves_s, saves_s / trace.wall_s, at_least_s)
