"""The steps of one worker: where they end, and the tokens that each begins with.

Steps as in Hogwild! Inference (arXiv 2504.06261): up to a blank line after a finished sentence.
Works on the bytes of tokens, and samples none.
"""

from __future__ import annotations

from collections.abc import Callable

_PUNCTUATION = (".", "!", "?", "\u3002", "\uff01", "\uff1f")  # and the wide ones
_CLOSING = "\"'\u201d\u2019)]}*_`"
_TAIL_BYTES = 64


class WorkerSteps:
    """`ended`: the ends of finished steps, in tokens of the answer.

    `opening` returns the tokens that begin a step, numbered from 1; `nudge` follows them once
    `nudge_tokens` were written since the last nudge. Without `shared`, the answer is one step.
    """

    def __init__(
        self,
        bytes_of: Callable[[int], bytes],
        opening: Callable[[int], list[int]],
        nudge: list[int],
        nudge_tokens: int,
        *,
        shared: bool,
    ) -> None:
        self.ended: list[int] = []
        self._bytes_of = bytes_of
        self._opening = opening
        self._nudge = nudge
        self._nudge_tokens = nudge_tokens
        self._shared = shared
        self._tail = b""
        self._written = 0
        self._nudged = 0

    def begin(self) -> list[int]:
        """The first tokens of the next step, counted as written."""
        forced = self._opening(len(self.ended) + 1)
        nudged = bool(self._nudge) and self._written - self._nudged >= self._nudge_tokens
        if nudged:
            forced = forced + self._nudge
        self._tail = b""
        self._written += len(forced)
        if nudged:
            self._nudged = self._written
        return forced

    def follow(self, token: int) -> list[int]:
        """Add a sampled token; the tokens that must follow it."""
        self._written += 1
        piece = self._bytes_of(token)
        self._tail = (self._tail + piece)[-_TAIL_BYTES:]
        if not (self._shared and b"\n" in piece and ends_step(self._tail)):
            return []
        self.ended.append(self._written)
        return self.begin()


def ends_step(text: bytes) -> bool:
    """Whether `text`, in UTF-8 and perhaps cut inside a character, ends with a finished step."""
    read = text.decode("utf-8", "ignore")
    visible = read.rstrip()
    finished = visible.rstrip(_CLOSING).endswith(_PUNCTUATION)
    return finished and read[len(visible) :].count("\n") >= 2
