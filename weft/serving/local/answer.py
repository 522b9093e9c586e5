"""The text of one answer as it grows: bytes to characters, and stop strings.

Never gives out half a character, nor text that may turn out to begin a stop string.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from weft.core.ports.model import TextDelta


@dataclass(frozen=True, slots=True)
class SampledToken:
    """A token and, where they are asked for, its log probability and the largest ones there."""

    token: int
    logprob: float | None = None
    largest: tuple[float, ...] | None = None


class AnswerText:
    """Collects tokens; hands out deltas whose texts and ids add up to the answer's."""

    def __init__(self, bytes_of: Callable[[int], bytes], stop: Sequence[str]) -> None:
        self.token_ids: list[int] = []
        self.logprobs: list[float] = []
        self.top_logprobs: list[tuple[float, ...]] = []
        self.stopped: str | None = None
        self._bytes_of = bytes_of
        self._stop = tuple(stop)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""  # decoded, but perhaps the beginning of a stop string
        self._ready = ""
        self._given: list[str] = []
        self._given_tokens = 0

    @property
    def text(self) -> str:
        """All text given out so far."""
        return "".join(self._given)

    def add(self, drawn: SampledToken, *, silent: bool = False) -> None:
        """Take one token; a `silent` one ends the answer and is not part of its text.

        A stop string ends the text before it, and is then `stopped`; the token stays in
        `token_ids`.
        """
        self.token_ids.append(drawn.token)
        if drawn.logprob is not None:
            self.logprobs.append(drawn.logprob)
        if drawn.largest is not None:
            self.top_logprobs.append(drawn.largest)
        if not silent:
            self._read(self._decoder.decode(self._bytes_of(drawn.token)))

    def finish(self) -> None:
        """Let out what was held back; a character that was never completed becomes U+FFFD."""
        self._read(self._decoder.decode(b"", final=True))
        if self.stopped is None:
            self._ready += self._held
        self._held = ""

    def delta(self) -> TextDelta | None:
        """What is new since the last call; None when there is no text to show yet."""
        if not self._ready:
            return None
        return self._give()

    def last_delta(self) -> TextDelta | None:
        """What remains after `finish`; None when every token has been given out."""
        if not self._ready and self._given_tokens == len(self.token_ids):
            return None
        return self._give()

    def _give(self) -> TextDelta:
        fresh = slice(self._given_tokens, len(self.token_ids))
        delta = TextDelta(
            self._ready,
            tuple(self.token_ids[fresh]),
            tuple(self.logprobs[fresh]),
            tuple(self.top_logprobs[fresh]),
        )
        self._given.append(self._ready)
        self._given_tokens = len(self.token_ids)
        self._ready = ""
        return delta

    def _read(self, text: str) -> None:
        if self.stopped is not None:
            return
        self._held += text
        found = [(at, stop) for stop in self._stop if (at := self._held.find(stop)) >= 0]
        if found:
            safe, self.stopped = min(found, key=itemgetter(0))
        else:
            safe = len(self._held) - _begun(self._held, self._stop)
        self._ready += self._held[:safe]
        self._held = self._held[safe:]


def _begun(text: str, stop: Sequence[str]) -> int:
    """Length of the longest end of `text` that begins, but is not, a stop string."""
    longest = 0
    for word in stop:
        for size in range(min(len(word) - 1, len(text)), longest, -1):
            if text.endswith(word[:size]):
                longest = size
                break
    return longest
