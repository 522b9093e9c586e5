"""A target whose passes are put on a timeline."""

from __future__ import annotations

from collections.abc import Callable

from evals.speculative.pipeinfer.timeline import Timeline
from weft.decoding.speculative.acceptance import AcceptedPath, DistributionAt
from weft.decoding.speculative.draft import DraftProposal
from weft.decoding.speculative.drafter import TargetOutputs
from weft.decoding.speculative.target import TargetModel


class Recorded:
    """Implements `TargetModel` by another one.

    `passes` is told of how many tokens each pass is: it may let them take a virtual time.
    """

    def __init__(
        self,
        target: TargetModel,
        timeline: Timeline,
        passes: Callable[[int], None] | None = None,
    ) -> None:
        self._target = target
        self._timeline = timeline
        self._passes = passes
        self._stamp = -1
        self._nodes = 0

    def verify(self, draft: DraftProposal, taps: tuple[int, ...] = ()) -> DistributionAt:
        self._nodes = len(draft.tree)
        with self._timeline.working("target", 1 + self._nodes) as self._stamp:
            if self._passes is not None:
                self._passes(1 + self._nodes)
            return self._target.verify(draft, taps)

    def commit(self, walk: AcceptedPath) -> TargetOutputs:
        self._timeline.discard(self._stamp, self._nodes - len(walk.path))
        return self._target.commit(walk)
