"""A target whose passes are put on a timeline."""

from __future__ import annotations

from collections.abc import Callable

from evals.speculative.pipeinfer.timeline import Timeline
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Seen
from weft.decoding.speculative.target import Target
from weft.decoding.speculative.walk import LawAt, Walk


class Recorded:
    """Implements `Target` by another one.

    `passes` is told of how many tokens each pass is: it may let them take a virtual time.
    """

    def __init__(
        self,
        target: Target,
        timeline: Timeline,
        passes: Callable[[int], None] | None = None,
    ) -> None:
        self._target = target
        self._timeline = timeline
        self._passes = passes
        self._stamp = -1
        self._nodes = 0

    def verify(self, draft: Draft, taps: tuple[int, ...] = ()) -> LawAt:
        self._nodes = len(draft.tree)
        with self._timeline.working("target", 1 + self._nodes) as self._stamp:
            if self._passes is not None:
                self._passes(1 + self._nodes)
            return self._target.verify(draft, taps)

    def commit(self, walk: Walk) -> Seen:
        self._timeline.discard(self._stamp, self._nodes - len(walk.path))
        return self._target.commit(walk)
