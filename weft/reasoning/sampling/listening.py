"""What one sample's stream tells: its tokens, its confidence, when it is due for a probe.

Knows no sampler; writes into its `Branch`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from weft.core.ports import Delta, TextDelta
from weft.reasoning.sampling.confidence import (
    Confidences,
    proxy_confidence,
    token_confidence,
)
from weft.reasoning.sampling.sampler import Branch
from weft.reasoning.thread.chat_call import Spent

Measure = Literal["tail", "bottom", "lowest"]
"""A sample's confidence: that of its last window, the mean of the lowest tenth of its windows, or
the lowest window."""


class Listening:
    """Follows the call that writes `branch`.

    `window`: tokens in a window of confidence (None: it is not measured). `every`: at each multiple
    of so many tokens `due` is called with the text and the token ids so far. `changed` is called
    when a sampler may have something to decide. `proxy` says whether any confidence came from the
    sampled token alone.
    """

    def __init__(
        self,
        branch: Branch,
        changed: Callable[[], None],
        *,
        window: int | None = None,
        every: int | None = None,
        due: Callable[[str, tuple[int, ...]], None] | None = None,
    ) -> None:
        self._branch = branch
        self._changed = changed
        self._track = None if window is None else Confidences(window)
        self._every = every
        self._due = due
        self._probes = 0
        self._spent: Spent | None = None
        self.proxy = False

    @property
    def text(self) -> str:
        """What came so far."""
        return "" if self._spent is None else "".join(self._spent.text)

    def watch(self, spent: Spent, delta: Delta) -> None:
        """One more piece of the answer."""
        first = not self._branch.tokens
        self._spent = spent
        self._branch.tokens = spent.tokens
        if isinstance(delta, TextDelta) and self._track is not None:
            self._measure(delta, self._track)
        while self._every is not None and spent.tokens >= self._every * (self._probes + 1):
            self._probes += 1
            if self._due is not None:
                self._due("".join(spent.text), tuple(spent.token_ids))
        if first:
            self._changed()

    def confidence(self, measure: Measure) -> float | None:
        """The sample's confidence; None: no log probability came."""
        track = self._track
        if track is None or not track.tokens:
            return None
        if measure == "bottom":
            return track.bottom()
        return track.tail if measure == "tail" else track.lowest_of_all

    def ended(self) -> None:
        """The sample is over: one that is shorter than a window has the confidence of all of it."""
        if self._track is not None:
            self._branch.lowest_confidence = self._track.lowest_of_all

    def _measure(self, delta: TextDelta, track: Confidences) -> None:
        if delta.top_logprobs:
            found = [token_confidence(top) for top in delta.top_logprobs]
        else:
            found = [proxy_confidence(logprob) for logprob in delta.logprobs]
            self.proxy |= bool(found)
        for value in found:
            track.add(value)
        if track.lowest != self._branch.lowest_confidence:
            self._branch.lowest_confidence = track.lowest
            self._changed()
