"""The text of one answer as it grows: bytes to characters, and stop strings.

Never returns half a character, nor text that may begin a stop string.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from weft.core.ports.model import TextDelta


@dataclass(frozen=True, slots=True)
class SampledToken:
    """A token and, if requested, its log probability and the largest ones at its position."""

    token: int
    logprob: float | None = None
    largest: tuple[float, ...] | None = None


class AnswerText:
    """Collects tokens; returns deltas whose texts and ids add up to the answer's."""

    def __init__(self, bytes_of: Callable[[int], bytes], stop: Sequence[str]) -> None:
        self.token_ids: list[int] = []
        self.logprobs: list[float] = []
        self.top_logprobs: list[tuple[float, ...]] = []
        self.stopped: str | None = None
        self._bytes_of = bytes_of
        self._stop = tuple(stop)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""  # decoded, but possibly the beginning of a stop string
        self._ready = ""
        self._texts: list[str] = []
        self._sent_tokens = 0

    @property
    def text(self) -> str:
        """All text returned so far."""
        return "".join(self._texts)

    def add(self, sampled: SampledToken, *, silent: bool = False) -> None:
        """Add a token; a `silent` one ends the answer and is not part of its text.

        A stop string ends the text before it, and is then `stopped`; the token stays in
        `token_ids`.
        """
        self.token_ids.append(sampled.token)
        if sampled.logprob is not None:
            self.logprobs.append(sampled.logprob)
        if sampled.largest is not None:
            self.top_logprobs.append(sampled.largest)
        if not silent:
            self._read(self._decoder.decode(self._bytes_of(sampled.token)))

    def finish(self) -> None:
        """Release the pending text; an incomplete character becomes U+FFFD."""
        self._read(self._decoder.decode(b"", final=True))
        if self.stopped is None:
            self._ready += self._pending
        self._pending = ""

    def delta(self) -> TextDelta | None:
        """The delta since the last call; None while there is no text."""
        if not self._ready:
            return None
        return self._take()

    def last_delta(self) -> TextDelta | None:
        """The rest after `finish`; None when every token has been returned."""
        if not self._ready and self._sent_tokens == len(self.token_ids):
            return None
        return self._take()

    def _take(self) -> TextDelta:
        fresh = slice(self._sent_tokens, len(self.token_ids))
        delta = TextDelta(
            self._ready,
            tuple(self.token_ids[fresh]),
            tuple(self.logprobs[fresh]),
            tuple(self.top_logprobs[fresh]),
        )
        self._texts.append(self._ready)
        self._sent_tokens = len(self.token_ids)
        self._ready = ""
        return delta

    def _read(self, text: str) -> None:
        if self.stopped is not None:
            return
        self._pending += text
        found = [(at, stop) for stop in self._stop if (at := self._pending.find(stop)) >= 0]
        if found:
            safe, self.stopped = min(found, key=itemgetter(0))
        else:
            safe = len(self._pending) - _partial_stop(self._pending, self._stop)
        self._ready += self._pending[:safe]
        self._pending = self._pending[safe:]


def _partial_stop(text: str, stop: Sequence[str]) -> int:
    """The length of the longest end of `text` that is a proper prefix of a stop string."""
    longest = 0
    for word in stop:
        for size in range(min(len(word) - 1, len(text)), longest, -1):
            if text.endswith(word[:size]):
                longest = size
                break
    return longest
